// The snippets of docs/concepts/overflow.md, and of docs/reference/queue.md.
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "sluice/queue/bounded_queue.hpp"

namespace {

struct frame {
  int number = 0;
};

bool old_frames_go_first() {
  std::vector<int> lost;
  sluice::bounded_queue<frame> preview({
      .capacity = 2,
      .overflow = sluice::overflow::drop_oldest,
      .name = "preview",
      .on_drop = [&](frame&& f) { lost.push_back(f.number); },
  });
  for (int i = 1; i <= 5; ++i) {
    if (!preview.push(frame{i})) return false;  // never waits, never fails while it is open
  }
  const auto first = preview.pop();
  return lost == std::vector{1, 2, 3} && first->number == 4 && preview.stats().dropped == 3;
}

bool the_answer_tells() {
  sluice::bounded_queue<frame> requests({.capacity = 1, .overflow = sluice::overflow::reject});
  const auto serve = [&](frame request) {
    switch (requests.push(std::move(request))) {
      case sluice::status::ok:
        return 202;
      case sluice::status::full:
        return 503;  // `request` has not been touched
      default:
        return 410;  // closed
    }
  };
  const bool busy = serve({1}) == 202 && serve({2}) == 503;
  requests.close();
  return busy && serve({3}) == 410;
}

bool weight_bounds_memory() {
  sluice::bounded_queue<std::string> uploads({
      .capacity = 1'000,
      .weight_max = 64,  // in the unit of `weigh`: bytes
      .weigh = [](const std::string& body) { return body.size(); },
  });
  const bool fits = static_cast<bool>(uploads.try_push(std::string(60, 'x')));
  return fits && uploads.try_push(std::string(5, 'x')) == sluice::status::full &&
         uploads.weight() == 60;
}

std::string what_is_wrong_with(const sluice::queue_options<frame>& configured) {
  if (const char* const expected = configured.problem()) {
    return std::string("[queue]: expected ") + expected;
  }
  return "";
}

bool configurations_are_checked() {
  return what_is_wrong_with({.capacity = 8}).empty() &&
         what_is_wrong_with({.capacity = 0}) == "[queue]: expected a capacity of at least 1";
}

bool a_range_ends_with_its_queue() {
  sluice::bounded_queue<std::string> mail(4);
  std::string delivered;
  const auto deliver = [&](const std::string& letter) { delivered += letter; };
  if (!mail.push("a") || !mail.emplace(std::size_t{2}, 'b')) return false;
  mail.close();
  for (std::string& letter : mail) deliver(letter);  // until it is closed and drained
  return delivered == "abb";
}

}  // namespace

int main() {
  const bool all = old_frames_go_first() && the_answer_tells() && weight_bounds_memory() &&
                   configurations_are_checked() && a_range_ends_with_its_queue();
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}

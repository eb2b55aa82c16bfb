#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/terminal_screen.hpp"
#include "jobs/cli/top_view.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/server/signal_watch.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr milliseconds answer_wait{10'000};

result<top_snapshot> look(client& server, const std::stop_token& stop) {
  const wait_limits limits(deadline::after(answer_wait), stop);
  auto stats = server.stats(limits);
  if (!stats) return stats.error();
  auto health = server.health(limits);
  if (!health) return health.error();
  auto queues = server.queues(limits);
  if (!queues) return queues.error();
  return top_snapshot{.at = seam::now(),
                      .wall = real_time().now(),
                      .stats = *stats,
                      .health = std::move(*health),
                      .queues = std::move(*queues)};
}

bool speaks_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return ::strcasestr(value, "utf-8") != nullptr || ::strcasestr(value, "utf8") != nullptr;
  }
  return false;
}

// Asks the server, on a thread of its own: a screen answers its keys also while a server does not.
class feed {
 public:
  struct change {
    std::string queue;
    bool pause = false;
  };
  struct news {
    std::optional<top_snapshot> seen;
    std::string problem;  // why it was not seen
    std::string note;     // what came of a change
  };

  feed(client& server, milliseconds every)
      : server_(server), every_(every), ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    check(ready_ >= 0, "sluice::jobs::cli::top", "a free descriptor");
    thread_ = seam::thread([this](const std::stop_token& stop) { run(stop); });
  }
  ~feed() {
    thread_.request_stop();
    changes_.close();
    thread_.join();
    ::close(ready_);
  }
  feed(const feed&) = delete;
  feed& operator=(const feed&) = delete;

  int ready() const noexcept { return ready_; }  // readable when there are news
  news take() {
    std::uint64_t count = 0;
    // Nothing to read is no fault: it was taken before.
    [[maybe_unused]] const auto n = ::read(ready_, &count, sizeof count);
    return news_.with([](news& all) { return std::exchange(all, {}); });
  }
  // Too many at once are dropped: somebody leans on a key.
  void ask(change what) { [[maybe_unused]] const auto pushed = changes_.try_push(std::move(what)); }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto seen = look(server_, stop);
      if (stop.stop_requested()) return;
      news_.with([&](news& all) {
        if (seen) {
          all.seen = std::move(*seen);
          all.problem.clear();
        } else {
          all.problem = seen.error().message;
        }
      });
      tell();
      if (auto asked = changes_.try_pop_for(every_, stop)) apply(*asked, stop);
    }
  }

  void apply(const change& what, const std::stop_token& stop) {
    const auto done = server_.configure(what.queue, {.paused = what.pause},
                                        wait_limits(deadline::after(answer_wait), stop));
    news_.with([&](news& all) {
      all.note =
          done ? what.queue + (what.pause ? " is paused" : " goes on") : done.error().message;
    });
    tell();
  }

  void tell() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(ready_, &one, sizeof one);
  }

  client& server_;
  const milliseconds every_;
  const int ready_;
  guarded<news> news_;
  bounded_queue<change> changes_{8};
  seam::thread thread_;
};

class top_screen {
 public:
  top_screen(terminal_screen& screen, feed& from, top_looks looks)
      : screen_(screen), feed_(from), looks_(std::move(looks)) {}

  // Returns the signal that ended it, or zero.
  int run() {
    for (;;) {
      looks_.size = screen_.size();
      screen_.draw(render_top(model_, choice_, looks_));
      const auto woken = screen_.wait(feed_.ready());
      if (woken.ended_by != 0) return woken.ended_by;
      for (const key_press& k : woken.keys) {
        if (!press(k)) return 0;
      }
      take_news();
    }
  }

 private:
  void take_news() {
    feed::news news = feed_.take();
    if (news.seen) model_.add(std::move(*news.seen));
    if (!news.problem.empty()) model_.lose(std::move(news.problem));
    if (!news.note.empty()) choice_.note = std::move(news.note);
  }

  // False: it was the last.
  bool press(key_press k) {
    using mode = top_choice::mode;
    constexpr char interrupt = '\003';
    if (k.what == key::text && k.letter == interrupt) return false;
    switch (choice_.now) {
      case mode::helping:
        choice_.now = mode::watching;
        return true;
      case mode::filtering:
        edit_filter(k);
        return true;
      case mode::asking:
        answer(k);
        return true;
      case mode::watching:
        break;
    }
    choice_.note.clear();
    return watch(k);
  }

  bool watch(key_press k) {
    constexpr std::ptrdiff_t page = 10;
    constexpr std::ptrdiff_t far = 1 << 20;
    switch (k.what) {
      case key::up:
        move(-1);
        break;
      case key::down:
        move(1);
        break;
      case key::page_up:
        move(-page);
        break;
      case key::page_down:
        move(page);
        break;
      case key::home:
        move(-far);
        break;
      case key::end:
        move(far);
        break;
      case key::escape:
        choice_.filter.clear();
        break;
      case key::enter:
      case key::erase:
        break;
      case key::text:
        return letter(k.letter);
    }
    return true;
  }

  bool letter(char c) {
    using mode = top_choice::mode;
    if (c == 'q') return false;
    if (c == 'k') move(-1);
    if (c == 'j') move(1);
    if (c == '?') choice_.now = mode::helping;
    if (c == '/') choice_.now = mode::filtering;
    if (c == 's') {
      const auto next = (static_cast<unsigned>(choice_.order) + 1) % 5;
      choice_.order = static_cast<top_order>(next);
    }
    if (c == 'p' && !shown_queues(model_, choice_).empty()) choice_.now = mode::asking;
    return true;
  }

  void move(std::ptrdiff_t by) {
    const auto shown = shown_queues(model_, choice_);
    if (shown.empty()) return;
    const auto last = static_cast<std::ptrdiff_t>(shown.size()) - 1;
    const auto at = static_cast<std::ptrdiff_t>(selected_place(shown, choice_)) + by;
    choice_.selected =
        shown[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))]->info.name;
  }

  void edit_filter(key_press k) {
    constexpr std::size_t filter_max = limits::queue_name_bytes_max;
    if (k.what == key::enter) choice_.now = top_choice::mode::watching;
    if (k.what == key::escape) {
      choice_.filter.clear();
      choice_.now = top_choice::mode::watching;
    }
    if (k.what == key::erase && !choice_.filter.empty()) choice_.filter.pop_back();
    const bool is_shown = k.what == key::text && k.letter > ' ' && k.letter < '\177';
    if (is_shown && choice_.filter.size() < filter_max) choice_.filter += k.letter;
  }

  void answer(key_press k) {
    choice_.now = top_choice::mode::watching;
    const auto shown = shown_queues(model_, choice_);
    if (shown.empty() || k.what != key::text || (k.letter != 'y' && k.letter != 'Y')) return;
    const queue_info& q = shown[selected_place(shown, choice_)]->info;
    choice_.selected = q.name;
    choice_.note = (q.options.paused ? "resuming " : "pausing ") + q.name + " ...";
    feed_.ask({q.name, !q.options.paused});
  }

  terminal_screen& screen_;
  feed& feed_;
  top_looks looks_;
  top_model model_;
  top_choice choice_;
};

std::string to_json(const top_snapshot& s) {
  std::string text;
  json::json_writer out(text);
  out.begin_object().key("at").value(s.wall).key("takes_pushes").value(s.health.takes_pushes);
  if (!s.health.takes_pushes) out.key("reason").value(s.health.reason);
  out.key("stats").raw(json::to_json(s.stats));
  std::string queues = "[";
  for (const queue_info& q : s.queues) queues += (queues.size() > 1 ? "," : "") + json::to_json(q);
  out.key("queues").raw(queues + "]").end_object();
  return text;
}

// Where nobody can press a key: two looks, for the rates, and what they showed.
exit_code print_once(client& server, signal_watch& signals, const top_arguments& what,
                     const top_looks& looks, const console& to) {
  top_model model;
  for (int i = 0; i < 2; ++i) {
    auto seen = look(server, {});
    if (!seen) return to.complain(seen.error());
    model.add(std::move(*seen));
    if (what.to.json) {
      to.line(to_json(model.now()));
      return exit_code::ok;
    }
    if (i > 0) break;
    const auto woken = signals.wait(deadline::after(what.every));
    if (woken.what == signal_watch::woken::by::signal) return exit_code::failed;
  }
  to.print(top_table(model, looks));
  return exit_code::ok;
}

}  // namespace

int run(const top_arguments& what, const console& to) {
  top_looks looks{.url = what.to.url, .every = what.every, .style = to.style()};
  const bool is_live = !what.to.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (!is_live) {
    signal_watch signals({SIGINT, SIGTERM});  // before the client starts its thread
    return with_client(
        what.to, to, [&](client& server) { return print_once(server, signals, what, looks, to); });
  }
  looks.unicode = speaks_unicode();
  // Settled before the screen is taken: what is wrong with the URL is to be read.
  if (auto server = connect(what.to); !server) return static_cast<int>(to.complain(server.error()));
  int ended_by = 0;
  {
    terminal_screen screen;
    auto server = connect(what.to);
    if (!server) return static_cast<int>(to.complain(server.error()));
    feed from(*server, what.every);
    ended_by = top_screen(screen, from, looks).run();
  }
  return ended_by == 0 ? static_cast<int>(exit_code::ok) : 128 + ended_by;
}

}  // namespace sluice::jobs::cli

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

result<top_snapshot> take_sample(client& server, const std::stop_token& stop) {
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

bool has_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return ::strcasestr(value, "utf-8") != nullptr || ::strcasestr(value, "utf8") != nullptr;
  }
  return false;
}

// Samples the server on its own thread, so that the screen handles keys while the server is slow.
class feed {
 public:
  struct change {
    std::string queue;
    bool pause = false;
  };
  struct update {
    std::optional<top_snapshot> sample;
    std::string problem;  // why there is no sample
    std::string note;     // result of a change
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

  int ready() const noexcept { return ready_; }  // readable when there is an update
  update take() {
    std::uint64_t count = 0;
    // An empty eventfd is fine: the update was taken before.
    [[maybe_unused]] const auto n = ::read(ready_, &count, sizeof count);
    return latest_.with([](update& u) { return std::exchange(u, {}); });
  }
  // Drops the change if too many are queued (key repeat).
  void request(change c) { [[maybe_unused]] const auto pushed = changes_.try_push(std::move(c)); }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto sample = take_sample(server_, stop);
      if (stop.stop_requested()) return;
      latest_.with([&](update& u) {
        if (sample) {
          u.sample = std::move(*sample);
          u.problem.clear();
        } else {
          u.problem = sample.error().message;
        }
      });
      notify();
      if (auto requested = changes_.pop({every_, stop})) apply(*requested, stop);
    }
  }

  void apply(const change& c, const std::stop_token& stop) {
    const auto done = server_.configure(c.queue, {.paused = c.pause},
                                        wait_limits(deadline::after(answer_wait), stop));
    latest_.with([&](update& u) {
      u.note = done ? c.queue + (c.pause ? " is paused" : " is resumed") : done.error().message;
    });
    notify();
  }

  void notify() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(ready_, &one, sizeof one);
  }

  client& server_;
  const milliseconds every_;
  const int ready_;
  guarded<update> latest_;
  bounded_queue<change> changes_{8};
  seam::thread thread_;
};

class top_screen {
 public:
  top_screen(terminal_screen& screen, feed& from, top_looks looks)
      : screen_(screen), feed_(from), looks_(std::move(looks)) {}

  // Returns the signal that ended the screen, or zero.
  int run() {
    for (;;) {
      looks_.size = screen_.size();
      screen_.draw(render_top(model_, choice_, looks_));
      const auto woken = screen_.wait(feed_.ready());
      if (woken.ended_by != 0) return woken.ended_by;
      for (const key_press& k : woken.keys) {
        if (!press(k)) return 0;
      }
      take_update();
    }
  }

 private:
  void take_update() {
    feed::update u = feed_.take();
    if (u.sample) model_.add(std::move(*u.sample));
    if (!u.problem.empty()) model_.lose(std::move(u.problem));
    if (!u.note.empty()) choice_.note = std::move(u.note);
  }

  // Returns false to quit.
  bool press(key_press k) {
    using mode = top_choice::mode;
    constexpr char interrupt = '\003';
    if (k.code == key::text && k.letter == interrupt) return false;
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
    switch (k.code) {
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
    if (k.code == key::enter) choice_.now = top_choice::mode::watching;
    if (k.code == key::escape) {
      choice_.filter.clear();
      choice_.now = top_choice::mode::watching;
    }
    if (k.code == key::erase && !choice_.filter.empty()) choice_.filter.pop_back();
    const bool is_shown = k.code == key::text && k.letter > ' ' && k.letter < '\177';
    if (is_shown && choice_.filter.size() < filter_max) choice_.filter += k.letter;
  }

  void answer(key_press k) {
    choice_.now = top_choice::mode::watching;
    const auto shown = shown_queues(model_, choice_);
    if (shown.empty() || k.code != key::text || (k.letter != 'y' && k.letter != 'Y')) return;
    const queue_info& q = shown[selected_place(shown, choice_)]->info;
    choice_.selected = q.name;
    choice_.note = (q.options.paused ? "resuming " : "pausing ") + q.name + " ...";
    feed_.request({q.name, !q.options.paused});
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

// Without a terminal: prints two samples, so that there are rates.
exit_code print_once(client& server, signal_watch& signals, const top_arguments& args,
                     const top_looks& looks, const console& io) {
  top_model model;
  for (int i = 0; i < 2; ++i) {
    auto sample = take_sample(server, {});
    if (!sample) return io.complain(sample.error());
    model.add(std::move(*sample));
    if (args.server.json) {
      io.line(to_json(model.now()));
      return exit_code::ok;
    }
    if (i > 0) break;
    const auto woken = signals.wait(deadline::after(args.every));
    if (woken.cause == signal_watch::woken::by::signal) return exit_code::failed;
  }
  io.print(top_table(model, looks));
  return exit_code::ok;
}

}  // namespace

int run(const top_arguments& args, const console& io) {
  top_looks looks{.url = args.server.url, .every = args.every, .style = io.style()};
  const bool is_live =
      !args.server.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (!is_live) {
    signal_watch signals({SIGINT, SIGTERM});  // created before the client's thread
    return with_client(args.server, io, [&](client& server) {
      return print_once(server, signals, args, looks, io);
    });
  }
  looks.unicode = has_unicode();
  // Checked before the screen is switched, so that an error of the URL stays readable.
  if (auto server = connect(args.server); !server)
    return static_cast<int>(io.complain(server.error()));
  int ended_by = 0;
  {
    terminal_screen screen;
    auto server = connect(args.server);
    if (!server) return static_cast<int>(io.complain(server.error()));
    feed from(*server, args.every);
    ended_by = top_screen(screen, from, looks).run();
  }
  return ended_by == 0 ? static_cast<int>(exit_code::ok) : 128 + ended_by;
}

}  // namespace sluice::jobs::cli

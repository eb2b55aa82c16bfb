#pragma once

// Full-screen terminal output with single-key input. Restores the terminal however the program
// ends.
//
// Guarantees: while the object exists, the terminal shows the alternate screen without a cursor,
// and keys arrive at once, without echo. The destructor, a terminating signal and a crash all
// restore it. Signals (INT, TERM, HUP, QUIT, WINCH, TSTP) are read by `wait` and run no handler;
// construct the object before starting any thread. A frame is one write. At most one object per
// program.

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/cli/top_view.hpp"
#include "jobs/model/result.hpp"
#include "sluice/base/deadline.hpp"

namespace sluice::jobs::cli {

enum class key : std::uint8_t {
  up,
  down,
  page_up,
  page_down,
  home,
  end,
  enter,
  escape,
  erase,
  text
};
struct key_press {
  key code = key::text;
  char letter = 0;  // for text

  friend bool operator==(const key_press&, const key_press&) = default;
};
// Removes the complete keys at the beginning of `read` and returns them. An incomplete escape
// sequence stays in `read` if more input may come.
enum class more_keys : std::uint8_t { may_come, none };
std::vector<key_press> take_keys(std::string& read, more_keys more);

class terminal_screen {
 public:
  struct woken {
    std::vector<key_press> keys{};
    bool resized = false;
    int ended_by = 0;  // a terminating signal; SIGHUP also if the terminal is gone
  };

  terminal_screen();
  ~terminal_screen();
  terminal_screen(const terminal_screen&) = delete;
  terminal_screen& operator=(const terminal_screen&) = delete;

  screen_size size() const noexcept;
  // Draws lines as returned by render_top.
  void draw(std::string_view frame);
  // Blocks until a key, a signal, or until `other` is readable.
  woken wait(int other);

 private:
  void enter();
  void leave();
  void suspend();

  sigset_t before_{};
  int signals_ = -1;
  std::string read_;
};

}  // namespace sluice::jobs::cli

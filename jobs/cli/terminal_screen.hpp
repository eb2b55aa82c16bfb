#pragma once

// A terminal that is drawn on as a whole and read key by key, and is given back as it was, however
// the program ends.
//
// Guarantees: while it lives, the terminal shows the alternate screen without a cursor, and keys
// come at once and unseen. Its end, a signal that ends the program, and a crash all restore it.
// Signals (INT, TERM, HUP, QUIT, WINCH, TSTP) are read by `wait` and run no handler; make it before
// any thread is started. A frame is one write. One at a time in a program.

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
  key what = key::text;
  char letter = 0;  // for text

  friend bool operator==(const key_press&, const key_press&) = default;
};
// The keys at the beginning of what was read, which are taken away; an escape sequence that has not
// come whole stays, unless nothing more is to be waited for.
enum class more_keys : std::uint8_t { may_come, none };
std::vector<key_press> take_keys(std::string& read, more_keys more);

class terminal_screen {
 public:
  struct woken {
    std::vector<key_press> keys{};
    bool resized = false;
    int ended_by = 0;  // a signal that asks to end; also SIGHUP when the terminal is gone
  };

  terminal_screen();
  ~terminal_screen();
  terminal_screen(const terminal_screen&) = delete;
  terminal_screen& operator=(const terminal_screen&) = delete;

  screen_size size() const noexcept;
  // Lines, as render_top gives them.
  void draw(std::string_view frame);
  // Until a key, a signal, or `also` can be read from.
  woken wait(int also);

 private:
  void enter();
  void leave();
  void suspend();

  sigset_t before_{};
  int signals_ = -1;
  std::string read_;
};

}  // namespace sluice::jobs::cli

// The snippets of docs/concepts/keyed-actors.md.
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/keyed_actor.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/memory_actor_store.hpp"
#include "sluice/actor/sqlite/sqlite_actor_store.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

using namespace std::chrono_literals;

namespace {

struct say {
  std::string text;
};
struct line_count {
  using reply = std::size_t;
};

class room : public sluice::actor<room, say, line_count> {
 public:
  void on(say m) { lines_.push_back(std::move(m.text)); }
  std::size_t on(line_count) { return lines_.size(); }

  std::string save() const {
    std::string bytes = "1";  // the version of the format
    for (const std::string& line : lines_) bytes += line + '\n';
    return bytes;
  }
  void load(std::string_view bytes) {
    if (!bytes.starts_with('1')) throw std::runtime_error("a room of another version");
    bytes.remove_prefix(1);
    while (!bytes.empty()) {
      lines_.emplace_back(bytes.substr(0, bytes.find('\n')));
      bytes.remove_prefix(lines_.back().size() + 1);
    }
  }

 private:
  std::vector<std::string> lines_;
};

bool rooms_in_a_file(const std::string& path) {
  sluice::sqlite_actor_store store(path);
  sluice::work_stealing_pool pool;
  sluice::actor_system system(pool);
  sluice::keyed_actors<room> rooms(system, {.store = &store, .type = "room", .idle = 1min});

  (void)rooms.of("lobby").send(say{"hello"});
  const std::size_t n = system.of<room>("lobby").ask(line_count{}).get();
  return n > 0;
}

struct deposit {
  using reply = long;
  long amount;
};

class account : public sluice::keyed_actor<account, deposit> {
 public:
  sluice::task<long> on(deposit d) {
    balance_ += d.amount;
    co_await save_now();
    co_return balance_;
  }
  std::string save() const { return std::to_string(balance_); }
  void load(std::string_view bytes) { balance_ = std::stol(std::string(bytes)); }

 private:
  long balance_ = 0;
};

bool in_a_test() {
  sluice::manual_clock clock;
  sluice::manual_executor here;
  sluice::memory_actor_store store;
  sluice::actor_system system(here, {.time = &clock});
  sluice::keyed_actors<account> accounts(system,
                                         {.store = &store, .type = "account", .idle = 1min});
  auto balance = accounts.of("ann").ask(deposit{5});
  here.run_all();
  clock.advance(1min);  // no message since
  here.run_all();
  const bool is_at_rest = accounts.stats().live == 0;
  accounts.close();
  system.close();
  here.run_all();
  return is_at_rest && balance.get() == 5;
}

}  // namespace

int main() {
  std::string name = (std::filesystem::temp_directory_path() / "sluice_rooms_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return 1;
  const std::string path = name + "/rooms.db";
  const bool all = rooms_in_a_file(path) && rooms_in_a_file(path) && in_a_test();
  std::filesystem::remove_all(name);
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}

// A program of another project: a keyed actor for an account, with its balance in a file.
#include <cstdio>
#include <string>
#include <string_view>

#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/sqlite/sqlite_actor_store.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

struct deposit {
  int cents;
};
struct balance {
  using reply = int;
};

class account : public sluice::actor<account, deposit, balance> {
 public:
  void on(deposit d) { cents_ += d.cents; }
  int on(balance) { return cents_; }
  std::string save() const { return std::to_string(cents_); }
  void load(std::string_view saved) { cents_ = std::stoi(std::string(saved)); }

 private:
  int cents_ = 0;
};

int visit(int cents) {
  sluice::work_stealing_pool pool;
  sluice::sqlite_actor_store store("accounts.db");
  sluice::actor_system system(pool);
  int now = 0;
  {
    const sluice::keyed_actors<account> accounts(system, {.store = &store, .type = "account"});
    if (!accounts.of("anna").send(deposit{cents})) return -1;
    now = accounts.of("anna").ask(balance{}).get();
  }
  system.close();
  return system.join() ? now : -1;
}

int main() {
  const int first = visit(100);
  const int second = visit(50);
  std::printf("first %d, second %d\n", first, second);
  return first == 100 && second == 150 ? 0 : 1;
}

// A message that an actor does not list cannot be sent to it.
#include "sluice/actor/actor_system.hpp"
#include "sluice/executor/manual_executor.hpp"

struct payment {
  int cents;
};
struct coupon {
  int number;
};

class cash_desk : public sluice::actor<cash_desk, payment> {
 public:
  void on(payment) {}
};

int main() {
  sluice::manual_executor executor;
  sluice::actor_system system(executor);
  const auto desk = system.spawn<cash_desk>();
  (void)desk.send(payment{100});
#ifdef MISTAKE
  (void)desk.send(coupon{7});
#endif
}

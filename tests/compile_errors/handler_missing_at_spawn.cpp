// An actor that lists a message and has no handler for it cannot be spawned.
#include "sluice/actor/actor.hpp"
#include "sluice/actor/actor_system.hpp"

struct payment {
  int cents;
};
struct coupon {
  int number;
};

class cash_desk : public sluice::actor<cash_desk, payment, coupon> {
 public:
  void on(payment) {}
#ifndef MISTAKE
  void on(coupon) {}
#endif
};

void open(sluice::actor_system& system) {
  (void)system.spawn<cash_desk>();
}

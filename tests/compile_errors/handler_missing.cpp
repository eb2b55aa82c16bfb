// A message cannot be sent to an actor that lists it and has no handler for it.
#include "sluice/actor/actor.hpp"
#include "sluice/actor/ref.hpp"

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

sluice::status pay(const sluice::ref<cash_desk>& desk) {
  (void)desk.try_send(payment{100});
  return desk.try_send(coupon{7});
}

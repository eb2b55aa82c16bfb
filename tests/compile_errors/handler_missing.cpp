// An actor that lists a message and has no handler for it cannot be sent that.
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

// An actor is not a recipient of a message that it does not list.
#include "sluice/actor/ref.hpp"

#include "sluice/actor/actor.hpp"

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

sluice::recipient<payment> for_payments(const sluice::ref<cash_desk>& desk) {
  return desk;
}
#ifdef MISTAKE
sluice::recipient<coupon> for_coupons(const sluice::ref<cash_desk>& desk) {
  return desk;
}
#endif

#pragma once

namespace embertable::bench {

/// How much of the machine's processor time went to other processes since construction.
class OtherLoad {
 public:
  OtherLoad();

  /// 0..1, of all CPUs; negative where the system does not say.
  double share() const;

 private:
  double busy_;
  double own_;
  double idle_;
};

}  // namespace embertable::bench

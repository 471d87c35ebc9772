#include "apps/jobs/models/ctr.h"
#include "apps/jobs/models/mf.h"
#include "apps/jobs/models/next_item.h"
#include "apps/jobs/models/pairwise.h"
#include "apps/jobs/models/skipgram.h"
#include "apps/jobs/spec/model.h"

namespace embertable::jobs {

const std::vector<ModelKind>& model_kinds() {
  static const std::vector<ModelKind> kinds = [] {
    std::vector<ModelKind> all;
    all.push_back(
        {"mf", []() -> std::unique_ptr<ModelSpec> { return std::make_unique<MfSpec>(); }});
    all.push_back(
        {"ctr", []() -> std::unique_ptr<ModelSpec> { return std::make_unique<CtrSpec>(); }});
    all.push_back({"next_item", []() -> std::unique_ptr<ModelSpec> {
                     return std::make_unique<NextItemSpec>();
                   }});
    all.push_back({"pairwise", []() -> std::unique_ptr<ModelSpec> {
                     return std::make_unique<PairwiseSpec>();
                   }});
    all.push_back({"skipgram", []() -> std::unique_ptr<ModelSpec> {
                     return std::make_unique<SkipgramSpec>();
                   }});
    return all;
  }();
  return kinds;
}

}  // namespace embertable::jobs

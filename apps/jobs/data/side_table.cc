#include "apps/jobs/data/side_table.h"

#include "apps/jobs/data/record_reader.h"

namespace embertable::jobs {
namespace {

/// The records of a side table, in the order of the file.
class SideTable {
 public:
  SideTable(const IdsSpec& spec, const Vocabulary& owner, IdLists& lists)
      : owner_(owner),
        keys_(spec.rules, {spec.field(spec.columns[0], 1)}, spec.columns),
        record_of_(owner.num_rows(), -1),
        lists_(lists) {}

  LeftOut read(CsvReader& reader) {
    while (reader.next()) {
      try {
        push(reader);
      } catch (const BrokenRecord&) {
        reader.leave_out();
      }
      if (std::ssize(queued_) == FieldKeys::kQueue) number();
    }
    number();
    keys_.finish();
    finish_lists(keys_, lists_);
    return reader.left_out();
  }

  /// Returns, by row of the owner, its record, or -1.
  const std::vector<std::int64_t>& record_of() const noexcept { return record_of_; }
  Vocabulary take() && { return std::move(keys_).take(); }

 private:
  void push(const CsvReader& reader) {
    const std::int32_t id = owner_.kind() == KeyKind::kInteger ? owner_.find(reader.integer(0))
                                                               : owner_.find(reader.text(0));
    if (id < 0) return;
    std::int64_t& record = record_of_[id];
    if (record >= 0) reader.refuse(0, "a key that stands in no other record");
    keys_.push(reader);
    record = records_++;
    queued_.push_back(1);
  }

  void number() {
    keys_.number_lists(queued_, lists_.ids, lists_.splits);
    queued_.clear();
  }

  const Vocabulary& owner_;
  FieldKeys keys_;
  std::vector<std::int64_t> record_of_;
  std::int64_t records_ = 0;
  std::vector<std::uint8_t> queued_;
  IdLists& lists_;
};

}  // namespace

LeftOut read_side_table(const IdsSpec& spec, const std::vector<std::string>& paths,
                        const Vocabulary& owner, std::int64_t skip_bad, IdColumn& column) {
  const std::string columns[] = {spec.key, spec.columns[0]};
  CsvReader reader(paths, spec.file.format, columns, skip_bad);
  IdLists by_record;
  SideTable table(spec, owner, by_record);
  const LeftOut left_out = table.read(reader);
  IdLists& lists = column.lists;
  lists.longest = by_record.longest;
  lists.ids.reserve(by_record.ids.size());
  for (std::size_t row = 0; row < table.record_of().size(); ++row) {
    const std::int64_t record = table.record_of()[row];
    if (record >= 0) {
      const auto split = by_record.splits.begin() + record;
      lists.ids.insert(lists.ids.end(), by_record.ids.begin() + split[0],
                       by_record.ids.begin() + split[1]);
    } else if (static_cast<std::int64_t>(row) < owner.size()) {
      ++lists.without;
    }
    lists.splits.push_back(static_cast<std::int64_t>(lists.ids.size()));
  }
  column.keys = std::move(table).take();
  return left_out;
}

}  // namespace embertable::jobs

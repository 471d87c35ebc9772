#include "checkpoint/matching.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

/// Returns the slot of this name, or null.
const SavedSlot* find(const std::vector<SavedSlot>& slots, const std::string& name) {
  const auto found = std::ranges::find(slots, name, &SavedSlot::name);
  return found == slots.end() ? nullptr : &*found;
}

/// Tables that are found by their names, of which a checkpoint may have any number.
class NamedTables {
 public:
  explicit NamedTables(const std::vector<SavedTable>& tables) : tables_(tables) {
    for (const SavedTable& table : tables) by_name_.emplace(table.name, &table);
  }

  auto begin() const { return tables_.begin(); }
  auto end() const { return tables_.end(); }

  /// Returns the table of this name, or null.
  const SavedTable* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  std::int64_t position(const SavedTable& table) const { return &table - tables_.data(); }

  std::string quoted_names() const {
    std::string names;
    for (const SavedTable& table : tables_)
      names += (names.empty() ? "'" : ", '") + table.name + "'";
    return names.empty() ? "none" : names;
  }

 private:
  const std::vector<SavedTable>& tables_;
  std::map<std::string_view, const SavedTable*> by_name_;
};

using Names = std::set<std::string_view>;

std::int32_t position(const std::vector<SavedSlot>& slots, const SavedSlot* slot) {
  return slot == nullptr ? -1 : static_cast<std::int32_t>(slot - slots.data());
}

/// Returns "[8, 4]", the shape of the rows or of one of the slots.
std::string shape_text(const SavedTable& table, const SavedSlot* slot) {
  const std::string rows = std::to_string(table.vocabulary_size);
  return slot && slot->row_wise ? "[" + rows + "]"
                                : "[" + rows + ", " + std::to_string(table.dim) + "]";
}

class Matcher {
 public:
  Matcher(const Owner& owner, const std::vector<SavedTable>& ours,
          const std::vector<SavedTable>& saved, const RestoreOptions& options,
          const std::filesystem::path& directory)
      : owner_(owner),
        ours_(ours),
        saved_(saved),
        options_(options),
        chosen_(options.tables.begin(), options.tables.end()),
        grow_(options.grow.begin(), options.grow.end()),
        directory_(directory.string()) {}

  Matching run() {
    if (!options_.grow.empty() && !owner_.can_grow)
      throw ValueError("restore: grow must be empty, because " + owner_.name +
                       " has the rows that were saved, got '" + options_.grow.front() + "'");
    for (const std::vector<std::string>* names : {&options_.tables, &options_.grow}) {
      for (const std::string& name : *names) {
        require(ours_, name, owner_.name);
        require(saved_, name, directory_);
      }
    }
    for (const SavedTable& table : ours_)
      if (chosen(table.name)) match_table(table);
    for (const SavedTable& table : saved_)
      if (chosen(table.name)) list_extra(table);
    refuse_misfits();
    return std::move(matching_);
  }

 private:
  bool chosen(const std::string& table) const { return chosen_.empty() || chosen_.contains(table); }

  bool is_grown(const SavedTable& table, const SavedTable& saved) const {
    return table.vocabulary_size > saved.vocabulary_size && grow_.contains(table.name);
  }

  static void require(const NamedTables& tables, const std::string& name,
                      const std::string& holder) {
    if (!tables.find(name))
      throw KeyError("restore: " + holder + " has no table '" + name + "'; there are " +
                     tables.quoted_names());
  }

  void match_table(const SavedTable& table) {
    const SavedTable* saved = saved_.find(table.name);
    const bool grown = saved && is_grown(table, *saved);
    const bool fits = saved && saved->dim == table.dim &&
                      (grown || saved->vocabulary_size == table.vocabulary_size);
    if (fits && grown) matching_.grown.push_back(table.name);
    if (fits) {
      take(table, nullptr, *saved, nullptr);
    } else if (saved) {
      mismatch(table, nullptr, *saved, nullptr);
    } else {
      matching_.missing.push_back(table.name);
      misfits_.push_back("'" + table.name + "' is missing");
    }
    for (const SavedSlot& slot : table.slots) match_slot(table, slot, saved, fits);
  }

  void match_slot(const SavedTable& table, const SavedSlot& slot, const SavedTable* saved,
                  bool table_fits) {
    const SavedSlot* found = saved ? find(saved->slots, slot.name) : nullptr;
    if (!found) {
      matching_.missing.push_back(variable_name(table.name, slot.name));
    } else if (table_fits && found->row_wise == slot.row_wise) {
      take(table, &slot, *saved, found);
    } else {
      mismatch(table, &slot, *saved, found);
    }
  }

  void take(const SavedTable& table, const SavedSlot* slot, const SavedTable& saved,
            const SavedSlot* saved_slot) {
    matching_.read.push_back({ours_.position(table), position(table.slots, slot),
                              saved_.position(saved), position(saved.slots, saved_slot),
                              is_grown(table, saved)});
  }

  void mismatch(const SavedTable& table, const SavedSlot* slot, const SavedTable& saved,
                const SavedSlot* saved_slot) {
    const std::string name = slot ? variable_name(table.name, slot->name) : table.name;
    matching_.mismatched.push_back(name + ": the checkpoint has " + shape_text(saved, saved_slot) +
                                   ", " + owner_.name + " " + shape_text(table, slot));
    misfits_.push_back("'" + name + "' has shape " + shape_text(saved, saved_slot) + ", " +
                       owner_.name + "'s " + shape_text(table, slot));
    const bool may_grow = !slot && saved.dim == table.dim &&
                          table.vocabulary_size > saved.vocabulary_size && owner_.can_grow;
    if (may_grow) misfits_.back() += " (grow restores into more rows)";
  }

  void list_extra(const SavedTable& saved) {
    const SavedTable* table = ours_.find(saved.name);
    if (!table) matching_.extra.push_back(saved.name);
    for (const SavedSlot& slot : saved.slots)
      if (!table || !find(table->slots, slot.name))
        matching_.extra.push_back(variable_name(saved.name, slot.name));
  }

  void refuse_misfits() const {
    std::string list;
    for (const std::string& misfit : misfits_) list += (list.empty() ? "" : "; ") + misfit;
    if (!list.empty() && !options_.partial)
      throw ValueError("restore: the tables of " + directory_ +
                       " must have the names and shapes of " + owner_.name + "'s: " + list);
    if (matching_.read.empty())
      throw ValueError("restore: " + directory_ + " must have a table in common with " +
                       owner_.name + ", which has " + ours_.quoted_names() + "; got " +
                       saved_.quoted_names() + (list.empty() ? "" : ": " + list));
  }

  const Owner& owner_;
  const NamedTables ours_, saved_;
  const RestoreOptions& options_;
  const Names chosen_, grow_;
  const std::string directory_;
  Matching matching_;
  std::vector<std::string> misfits_;  ///< tables and slots, for a message
};

}  // namespace

Matching match(const Owner& owner, const std::vector<SavedTable>& ours,
               const std::vector<SavedTable>& saved, const RestoreOptions& options,
               const std::filesystem::path& directory) {
  return Matcher(owner, ours, saved, options, directory).run();
}

}  // namespace embertable::checkpoint

#include "engine/save.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "base/byte_watch.h"
#include "checkpoint/digest.h"
#include "checkpoint/run_directory.h"
#include "checkpoint/writer.h"
#include "embertable/errors.h"
#include "engine/host_rows.h"
#include "engine/setup/manifest_of.h"
#include "exchange/all_gather.h"

namespace embertable::engine {
namespace {

using checkpoint::RowSource;

/// Reads rows of one shard; `rows` are numbers within it.
RowSource rows_of(const Shard& shard, const checkpoint::Progression& rows) {
  RowSource source;
  source.rows = rows.count;
  for (std::int32_t slot = -1; slot < shard.block().slots; ++slot) {
    source.fill.push_back([&shard, rows, slot](std::int64_t first, std::span<float> out) {
      shard.read(slot, rows[first], rows.step, std::ssize(out) / shard.width(slot), out.data());
    });
  }
  return source;
}

/// Reads the rows of a whole table in ascending order, on host 0 of several.
RowSource rows_of(HostGroup& hosts, const Tables& tables, const StoredTable& table) {
  RowSource source;
  source.rows = table.vocabulary_size;
  for (std::int32_t slot = -1; slot < static_cast<std::int32_t>(table.slots.size()); ++slot) {
    const Tables::Variable variable{&table, slot, table.shards.front().width(slot)};
    source.fill.push_back([&hosts, &tables, variable](std::int64_t first, std::span<float> out) {
      copy_rows_to_first(hosts, tables, variable, first, out);
    });
  }
  return source;
}

/// Opens a directory that host 0 has made in a run.
std::unique_ptr<checkpoint::Directory> find(const std::filesystem::path& run,
                                            const std::string& name) {
  std::unique_ptr<checkpoint::Directory> found;
  const bool is_there = checkpoint::seen_in_time([&] {
    try {
      found = checkpoint::local_files().open_directory(run)->open(name);
    } catch (const IoError&) {  // the run itself is not here
    }
    return found != nullptr;
  });
  if (is_there) return found;
  throw IoError(run.string() + ": cannot open " + name +
                ", which host 0 has made there: all hosts must share the file system of a run");
}

/// Returns the bytes of these rows of a shard with their slots.
std::int64_t bytes_of(const Shard& shard, const checkpoint::Progression& rows) {
  std::int64_t bytes = 0;
  for (std::int32_t slot = -1; slot < shard.block().slots; ++slot)
    bytes += shard.width(slot) * bytes_per_element(shard.type(slot));
  return rows.count * bytes;
}

/// Writes the shards of this process's hosts, table by table. Each host writes its share of a
/// replicated table, as if it were in shards.
std::vector<checkpoint::FileRecord> write_shards(checkpoint::Directory& directory,
                                                 const checkpoint::Manifest& manifest,
                                                 const Tables& tables) {
  const auto rows_of_shard = [&](const StoredTable& table, const Shard& shard) {
    return checkpoint::rows_of_host(manifest.topology, table.vocabulary_size, shard.host());
  };
  for (const StoredTable& table : tables.tables())
    for (const Shard& shard : table.shards)
      ByteWatch::expect(bytes_of(shard, rows_of_shard(table, shard)));
  std::vector<checkpoint::FileRecord> written;
  for (std::int64_t t = 0; t < std::ssize(tables.tables()); ++t) {
    const StoredTable& table = tables.tables()[t];
    for (const Shard& shard : table.shards) {
      const checkpoint::Progression rows = rows_of_shard(table, shard);
      if (rows.count == 0) continue;
      const checkpoint::Progression within =
          table.placement.replicated() ? rows : checkpoint::Progression{.count = rows.count};
      written.push_back(checkpoint::write_table_file(directory, manifest, t, shard.host(), rows,
                                                     rows_of(shard, within)));
    }
  }
  return written;
}

std::string lines_of(std::span<const checkpoint::FileRecord> files) {
  std::string lines;
  for (const checkpoint::FileRecord& file : files) lines += checkpoint::to_json(file) + "\n";
  return lines;
}

/// Returns the files of all hosts in the order of `write_shards` for all of them.
std::vector<checkpoint::FileRecord> records_of(std::span<const std::string> lines_by_host) {
  std::vector<checkpoint::FileRecord> files;
  for (const std::string& lines : lines_by_host) {
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);)
      files.push_back(checkpoint::parse_file_record(line));
  }
  std::ranges::stable_sort(files, {}, &checkpoint::FileRecord::table);
  return files;
}

}  // namespace

std::filesystem::path save_tables(const Setup& setup, const Tables& tables, std::int64_t step,
                                  const RunToSave& run, const CallerState& state,
                                  const std::map<std::string, IdMap>& id_maps) {
  HostGroup& hosts = *setup.group;
  std::optional<checkpoint::Writer> writer;  // null on other hosts than the first
  hosts.together("save: making the step", [&] {
    if (!hosts.is_first()) return;
    std::map<std::string, std::string> maps;
    for (const auto& [name, map] : id_maps) maps[name] = map.to_bytes();
    writer.emplace(*run.opened, manifest_of(setup, step));
    writer->add_state(state, maps);  // small, and may be refused: before the rows
  });
  const std::string name =
      hosts.from_first("save: name of the step", writer ? writer->name() : std::string());

  std::vector<checkpoint::FileRecord> written;
  hosts.together("save: writing rows", [&] {
    const std::unique_ptr<checkpoint::Directory> shared =
        writer ? nullptr : find(run.directory, name);
    checkpoint::Directory& directory = writer ? writer->opened() : *shared;
    written = write_shards(directory, manifest_of(setup, step), tables);
  });
  std::vector<std::string> lines;
  if (hosts.several()) lines = all_gather(hosts.exchange(), "save: files", lines_of(written));

  std::string saved;
  hosts.together("save: commit", [&] {
    if (!writer) return;
    if (hosts.several()) written = records_of(lines);
    for (checkpoint::FileRecord& file : written) writer->add(std::move(file));
    saved = writer->commit().filename();
  });
  return run.directory / hosts.from_first("save: commit", saved);
}

std::string digest_of(HostGroup& hosts, const Tables& tables) {
  std::vector<checkpoint::DigestTable> all;
  for (const StoredTable& table : tables.tables()) {
    checkpoint::DigestTable one{table.name, table.dim, {}, rows_of(hosts, tables, table)};
    for (const RuleSlot& slot : table.slots)
      one.slots.push_back({std::string(slot.name), slot.row_wise});
    all.push_back(std::move(one));
  }
  std::string digest;  // right on host 0
  hosts.together("digest", [&] { digest = checkpoint::digest(std::move(all)); });
  return hosts.from_first("digest", digest);
}

}  // namespace embertable::engine

#include "tensorflow/bundle/bundle_messages.h"

#include <bit>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "tensorflow/bundle/sub_message.h"

namespace embertable::formats {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using protozero::tag_and_type;

constexpr protozero::pbf_tag_type kHeaderShards = 1, kHeaderEndianness = 2, kHeaderVersion = 3;
constexpr protozero::pbf_tag_type kProducer = 1, kMinConsumer = 2, kBadConsumers = 3;
constexpr protozero::pbf_tag_type kDtype = 1, kShape = 2, kShard = 3, kOffset = 4, kSize = 5,
                                  kSum = 6, kSlices = 7;
constexpr protozero::pbf_tag_type kDim = 2, kUnknownRank = 3, kDimSize = 1;
constexpr protozero::pbf_tag_type kExtent = 1, kStart = 1, kLength = 2;

constexpr std::uint32_t varint(protozero::pbf_tag_type tag) {
  return tag_and_type(tag, pbf_wire_type::varint);
}
constexpr std::uint32_t message(protozero::pbf_tag_type tag) {
  return tag_and_type(tag, pbf_wire_type::length_delimited);
}

/// Leaves out zeros, as proto3 does.
void add_number(pbf_writer& writer, protozero::pbf_tag_type tag, std::int64_t number) {
  if (number != 0) writer.add_int64(tag, number);
}

void write_extent(pbf_writer& writer, const SliceExtent& extent) {
  if (extent.length == SliceExtent::kWhole) return;
  add_number(writer, kStart, extent.start);
  writer.add_int64(kLength, extent.length);
}

void write_slice(pbf_writer& writer, const TensorSlice& slice) {
  for (const SliceExtent& extent : slice)
    add_sub_message(writer, kExtent, [&](pbf_writer& one) { write_extent(one, extent); });
}

void write_shape(pbf_writer& writer, const std::vector<std::int64_t>& shape) {
  for (const std::int64_t size : shape)
    add_sub_message(writer, kDim, [&](pbf_writer& dim) { add_number(dim, kDimSize, size); });
}

void write_version(pbf_writer& writer, const BundleHeader& header) {
  add_number(writer, kProducer, header.producer);
  add_number(writer, kMinConsumer, header.min_consumer);
  writer.add_packed_int32(kBadConsumers, header.bad_consumers.begin(), header.bad_consumers.end());
}

void read_version(pbf_reader version, BundleHeader& header) {
  while (version.next()) {
    switch (version.tag_and_type()) {
      case varint(kProducer):
        header.producer = version.get_int32();
        break;
      case varint(kMinConsumer):
        header.min_consumer = version.get_int32();
        break;
      case varint(kBadConsumers):
        header.bad_consumers.push_back(version.get_int32());
        break;
      case message(kBadConsumers):
        for (const std::int32_t one : version.get_packed_int32())
          header.bad_consumers.push_back(one);
        break;
      default:
        version.skip();
    }
  }
}

std::int64_t read_dim(pbf_reader dim) {
  std::int64_t size = 0;
  while (dim.next()) {
    if (dim.tag_and_type() == varint(kDimSize)) {
      size = dim.get_int64();
    } else {
      dim.skip();
    }
  }
  return size;
}

void read_shape(pbf_reader shape, BundleEntry& entry) {
  bool unknown = false;
  while (shape.next()) {
    switch (shape.tag_and_type()) {
      case message(kDim):
        entry.shape.push_back(read_dim(shape.get_message()));
        break;
      case varint(kUnknownRank):
        unknown = shape.get_uint64() != 0;  // get_bool looks beyond the end
        break;
      default:
        shape.skip();
    }
  }
  if (unknown) entry.shape.clear();  // TensorFlow takes it for a scalar
}

SliceExtent read_extent(pbf_reader extent) {
  SliceExtent read;
  while (extent.next()) {
    switch (extent.tag_and_type()) {
      case varint(kStart):
        read.start = extent.get_int64();
        break;
      case varint(kLength):
        read.length = extent.get_int64();
        break;
      default:
        extent.skip();
    }
  }
  return read;
}

TensorSlice read_slice(pbf_reader slice) {
  TensorSlice read;
  while (slice.next()) {
    if (slice.tag_and_type() == message(kExtent)) {
      read.push_back(read_extent(slice.get_message()));
    } else {
      slice.skip();
    }
  }
  return read;
}

void read_header_field(pbf_reader& reader, BundleHeader& header) {
  switch (reader.tag_and_type()) {
    case varint(kHeaderShards):
      header.num_shards = reader.get_int32();
      break;
    case varint(kHeaderEndianness):
      header.endianness = reader.get_enum();
      break;
    case message(kHeaderVersion):
      read_version(reader.get_message(), header);
      break;
    default:
      reader.skip();
  }
}

void read_entry_field(pbf_reader& reader, BundleEntry& entry) {
  switch (reader.tag_and_type()) {
    case varint(kDtype):
      entry.dtype = reader.get_enum();
      break;
    case message(kShape):
      read_shape(reader.get_message(), entry);
      break;
    case varint(kShard):
      entry.shard = reader.get_int32();
      break;
    case varint(kOffset):
      entry.offset = reader.get_int64();
      break;
    case varint(kSize):
      entry.size = reader.get_int64();
      break;
    case tag_and_type(kSum, pbf_wire_type::fixed32):
      entry.masked_sum = reader.get_fixed32();
      break;
    case message(kSlices):
      entry.slices.push_back(read_slice(reader.get_message()));
      break;
    default:
      reader.skip();
  }
}

/// Reads every field; returns false if protozero finds a malformed one.
template <class Take>
bool read_fields(std::string_view bytes, Take take) {
  try {
    pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) take(reader);
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

/// By length of an encoded number: bits that its first two bytes are combined with. Source:
/// ordered_code.cc, kLengthToHeaderBits.
constexpr unsigned char kHeaders[11][2] = {{0x00, 0}, {0x80, 0},    {0xc0, 0},   {0xe0, 0},
                                           {0xf0, 0}, {0xf8, 0},    {0xfc, 0},   {0xfe, 0},
                                           {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};

}  // namespace

std::string serialize(const BundleHeader& header) {
  std::string bytes;
  pbf_writer writer(bytes);
  add_number(writer, kHeaderShards, header.num_shards);
  add_number(writer, kHeaderEndianness, header.endianness);
  add_sub_message(writer, kHeaderVersion,
                  [&](pbf_writer& version) { write_version(version, header); });
  return bytes;
}

std::string serialize(const BundleEntry& entry) {
  std::string bytes;
  pbf_writer writer(bytes);
  add_number(writer, kDtype, entry.dtype);
  add_sub_message(writer, kShape, [&](pbf_writer& shape) { write_shape(shape, entry.shape); });
  add_number(writer, kShard, entry.shard);
  add_number(writer, kOffset, entry.offset);
  add_number(writer, kSize, entry.size);
  if (entry.masked_sum != 0) writer.add_fixed32(kSum, entry.masked_sum);
  for (const TensorSlice& slice : entry.slices)
    add_sub_message(writer, kSlices, [&](pbf_writer& one) { write_slice(one, slice); });
  return bytes;
}

bool parse(std::string_view bytes, BundleHeader& header) {
  return read_fields(bytes, [&](pbf_reader& reader) { read_header_field(reader, header); });
}

bool parse(std::string_view bytes, BundleEntry& entry) {
  return read_fields(bytes, [&](pbf_reader& reader) { read_entry_field(reader, entry); });
}

void append_ordered(std::uint64_t number, std::string& key) {
  const auto bytes = static_cast<int>((std::bit_width(number) + 7) / 8);
  key += static_cast<char>(bytes);
  for (int i = bytes - 1; i >= 0; --i) key += static_cast<char>(number >> (8 * i));
}

void append_ordered(std::string_view text, std::string& key) {
  for (const char c : text) {
    key += c;
    if (c == '\0') key += '\xff';
    if (c == '\xff') key += '\0';
  }
  key.append("\0\x01", 2);
}

void append_ordered_signed(std::int64_t number, std::string& key) {
  const auto magnitude = static_cast<std::uint64_t>(number < 0 ? ~number : number);
  const auto length = static_cast<std::size_t>(std::bit_width(magnitude) / 7 + 1);
  char bytes[10];  // big-endian, the sign in front
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    const std::size_t shift = 8 * (sizeof bytes - 1 - i);
    bytes[i] = shift < 64 ? static_cast<char>(static_cast<std::uint64_t>(number) >> shift)
                          : (number < 0 ? '\xff' : '\0');
  }
  char* first = bytes + sizeof bytes - length;
  first[0] = static_cast<char>(first[0] ^ kHeaders[length][0]);
  if (length > 1) first[1] = static_cast<char>(first[1] ^ kHeaders[length][1]);
  key.append(first, length);
}

std::string slice_key(std::string_view name, const TensorSlice& slice) {
  std::string key;
  append_ordered(std::uint64_t{0}, key);
  append_ordered(name, key);
  append_ordered(static_cast<std::uint64_t>(slice.size()), key);
  for (const SliceExtent& extent : slice) {
    const bool whole = extent.length == SliceExtent::kWhole;
    append_ordered_signed(whole ? 0 : extent.start, key);
    append_ordered_signed(extent.length, key);
  }
  return key;
}

}  // namespace embertable::formats

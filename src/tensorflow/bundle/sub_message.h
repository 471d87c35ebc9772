#pragma once

#include <protozero/pbf_writer.hpp>
#include <string>

namespace embertable::formats {

/// Adds a message to a message: write(pbf_writer&) adds its fields. Unlike a nested pbf_writer, it
/// does not leave out a message without fields.
template <class Write>
void add_sub_message(protozero::pbf_writer& parent, protozero::pbf_tag_type tag, Write write) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  write(writer);
  parent.add_message(tag, bytes);
}

}  // namespace embertable::formats

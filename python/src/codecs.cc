// Loads zlib and zstd when the first text is read that may be compressed, so that importing the
// extension needs neither of them.
#include <dlfcn.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <string>

#include "embertable/errors.h"

namespace embertable::python {
namespace {

/// A library of the system. It is never closed.
class Codec {
 public:
  explicit Codec(const char* file) : file_(file), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr)
      throw IoError(std::string("compressed text needs ") + file + ": cannot load: " + dlerror());
  }

  /// Returns the library's function of this type and name.
  template <class Function>
  Function* function(Function* /*declared*/, const char* name) const {
    void* const found = dlsym(handle_, name);
    if (found == nullptr) throw IoError(std::string(file_) + ": cannot load: it has no " + name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* file_;
  void* handle_;
};

const Codec& zlib() {
  static const Codec codec("libz.so.1");
  return codec;
}
const Codec& zstd() {
  static const Codec codec("libzstd.so.1");
  return codec;
}

}  // namespace
}  // namespace embertable::python

#undef gzopen  // Python's headers make zlib.h call it gzopen64, which the callers do not

/// Returns the library's function of the same name as this one.
#define EMBERTABLE_LOADED(codec, name) \
  (embertable::python::codec().function(static_cast<decltype(&(name))>(nullptr), #name))

extern "C" {

int inflateInit2_(z_streamp stream, int bits, const char* version, int size) {
  static auto* const call = EMBERTABLE_LOADED(zlib, inflateInit2_);
  return call(stream, bits, version, size);
}
int inflate(z_streamp stream, int flush) {
  static auto* const call = EMBERTABLE_LOADED(zlib, inflate);
  return call(stream, flush);
}
int inflateReset(z_streamp stream) {
  static auto* const call = EMBERTABLE_LOADED(zlib, inflateReset);
  return call(stream);
}
int inflateEnd(z_streamp stream) {
  static auto* const call = EMBERTABLE_LOADED(zlib, inflateEnd);
  return call(stream);
}

gzFile gzopen(const char* path, const char* mode) {
  static auto* const call = EMBERTABLE_LOADED(zlib, gzopen);
  return call(path, mode);
}
int gzwrite(gzFile file, voidpc bytes, unsigned size) {
  static auto* const call = EMBERTABLE_LOADED(zlib, gzwrite);
  return call(file, bytes, size);
}
int gzclose(gzFile file) {
  static auto* const call = EMBERTABLE_LOADED(zlib, gzclose);
  return call(file);
}

ZSTD_DStream* ZSTD_createDStream(void) {
  static auto* const call = EMBERTABLE_LOADED(zstd, ZSTD_createDStream);
  return call();
}
size_t ZSTD_freeDStream(ZSTD_DStream* stream) {
  static auto* const call = EMBERTABLE_LOADED(zstd, ZSTD_freeDStream);
  return call(stream);
}
size_t ZSTD_decompressStream(ZSTD_DStream* stream, ZSTD_outBuffer* out, ZSTD_inBuffer* in) {
  static auto* const call = EMBERTABLE_LOADED(zstd, ZSTD_decompressStream);
  return call(stream, out, in);
}
unsigned ZSTD_isError(size_t code) {
  static auto* const call = EMBERTABLE_LOADED(zstd, ZSTD_isError);
  return call(code);
}
const char* ZSTD_getErrorName(size_t code) {
  static auto* const call = EMBERTABLE_LOADED(zstd, ZSTD_getErrorName);
  return call(code);
}
ZSTD_ErrorCode ZSTD_getErrorCode(size_t code) {
  static auto* const call = EMBERTABLE_LOADED(zstd, ZSTD_getErrorCode);
  return call(code);
}

}  // extern "C"

// Undoes the compression of values: zlib (RFC 1950), gzip (RFC 1952), Zstandard (RFC 8878), and FastLZ 0.1 in
// its levels 1 and 2 (github.com/ariya/FastLZ), php-memcached's default.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "common/base/compression.hpp"
#include "common/values/document.hpp"

namespace mcds::values {

namespace {

[[noreturn]] void fail_too_long(std::size_t max_bytes) {
  throw CorruptData("decompressed, the value is longer than --max-bytes (" + std::to_string(max_bytes) + ')');
}

std::string inflated(std::string_view bytes, std::size_t max_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + 32) != Z_OK) throw std::bad_alloc();  // 32: zlib and gzip
  std::string out;
  char part[16384];
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  int status = Z_OK;
  while (status == Z_OK && out.size() <= max_bytes) {
    stream.next_out = reinterpret_cast<Bytef*>(part);
    stream.avail_out = sizeof part;
    status = ::inflate(&stream, Z_NO_FLUSH);
    out.append(part, sizeof part - stream.avail_out);
  }
  const std::size_t taken = stream.total_in;
  inflateEnd(&stream);
  if (out.size() > max_bytes) fail_too_long(max_bytes);
  if (status == Z_BUF_ERROR) fail("the compressed data end too early", bytes.size());
  if (status != Z_STREAM_END) fail("not the compressed data of zlib or gzip", taken);
  if (taken != bytes.size()) fail("the compressed data end", taken);
  return out;
}

std::string unzstd(std::string_view bytes, std::size_t max_bytes) {
  Decompressor decompressor([&](char* into, std::size_t size) {
    const std::size_t taken = bytes.copy(into, size);
    bytes.remove_prefix(taken);
    return taken;
  });
  std::string out;
  char part[16384];
  while (const std::size_t size = decompressor.read(part, sizeof part)) {
    if (out.append(part, size).size() > max_bytes) fail_too_long(max_bytes);
  }
  if (!decompressor.problem().empty()) throw CorruptData(decompressor.problem());
  return out;
}

// Decodes FastLZ. A control byte below 32 is followed by that many literals and one more. In any other one,
// the upper 3 bits are the length of a match (7: more length bytes follow), the lower 5 the top of its
// distance.
std::string unfastlz(std::string_view bytes, std::size_t size) {
  Input in(bytes);
  std::string out;
  const bool level_2 = !bytes.empty() && static_cast<std::uint8_t>(bytes[0]) >> 5 == 1;
  for (bool first = true; in.left() > 0; first = false) {
    const std::size_t control = first ? in.byte() & 31U : in.byte();
    if (control < 32) {
      out += in.take(control + 1);
    } else {
      std::size_t length = (control >> 5) + 2;
      if (length == 9) {
        std::size_t more = in.byte();
        length += more;
        while (level_2 && more == 255) length += more = in.byte();
      }
      std::size_t distance = (control & 31) << 8;
      const std::size_t low = in.byte();
      distance += low + 1;
      if (level_2 && low == 255 && control % 32 == 31) distance = in.big(2) + 8192;
      if (distance > out.size()) in.fail("not the compressed data of FastLZ");
      if (length > size - std::min(size, out.size())) break;
      while (length-- > 0) out += out[out.size() - distance];
    }
  }
  if (in.left() > 0) in.fail("more FastLZ data than the length before them says");
  return out;
}

}  // namespace

std::string decompress(std::string_view form, std::string_view bytes, std::size_t max_bytes,
                       std::string& name) {
  std::size_t size = max_bytes;
  // Zstandard data state their own length, so the one in front may be absent.
  const bool sized =
      form.starts_with("sized-") && !(form == "sized-zstd" && bytes.starts_with("\x28\xb5\x2f\xfd"));
  if (sized) {
    Input in(bytes);
    size = in.little(4);
    if (size > max_bytes) fail_too_long(max_bytes);
    bytes = in.rest();
  }
  name = form.ends_with("zlib") && bytes.starts_with("\x1f\x8b") ? "gzip" : form.substr(form.find('-') + 1);
  std::string out = name == "fastlz" ? unfastlz(bytes, size)
                    : name == "zstd" ? unzstd(bytes, max_bytes)
                                     : inflated(bytes, max_bytes);
  if (sized && out.size() != size)
    throw CorruptData("decompressed, the value has " + std::to_string(out.size()) + " bytes and not the " +
                      std::to_string(size) + " that it claims");
  return out;
}

}  // namespace mcds::values

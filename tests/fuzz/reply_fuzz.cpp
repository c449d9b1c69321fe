// libFuzzer: no bytes of a server may crash the reply reader, nor be read differently when they come in
// pieces. The first byte chooses the requests, from 8 on those of the classic protocol, and from 16 on adds
// before gets, which are quiet from 24 on; the second the size of the pieces.
//
// sources: common/cluster/wire/parse.cpp common/cluster/wire/encode.cpp common/cluster/request.cpp common/cluster/transport.cpp common/base/bytes.cpp common/base/text.cpp common/base/units.cpp common/base/clock.cpp -lnettle -lz
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/reply_reading.hpp"

namespace {

using namespace mcds;

std::vector<Request> requests_of(unsigned choice) {
  const Exptime never = Exptime::never();
  switch (choice % 8) {
    case 0: return {Request::get("a"), Request::get("b"), Request::get("c")};
    case 1: return {Request::gets("a"), Request::probe("b", 0)};
    case 2: return {Request::set("a", "v", never), Request::append("b", "v")};
    case 3: return {Request::incr("a", 1), Request::decr("a", 1)};
    case 4: return {Request::incr_or_create("a", 1, 1, never), Request::incr_or_create("b", 1, 1, never)};
    case 5: return {Request::remove("a"), Request::remove_if("a", CasUnique{1}), Request::touch("a", never)};
    case 6: return {Request::stats(0), Request::version(0)};
    default: return {Request::get("a"), Request::set("a", "v", never), Request::gets("a"), Request::get("b")};
  }
}

std::vector<Request> added(unsigned choice) {
  std::vector<Request> requests{Request::add_and_get("a", "v", Exptime::never()),
                                Request::add_and_get("b", "w", Exptime::never())};
  if (choice % 2 == 1) requests.push_back(Request::get("c"));
  return requests;
}

bool same(const Reply& a, const Reply& b) {
  return a.outcome == b.outcome && a.value == b.value && a.number == b.number && a.flags == b.flags &&
         a.cas == b.cas && a.created == b.created && a.failed() == b.failed();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 3) return 0;
  const bool adds = bytes[0] / 16 % 2 == 1;
  const bool quiet = adds && bytes[0] / 8 % 2 == 1;
  const std::vector<Request> requests = adds ? added(bytes[0]) : requests_of(bytes[0]);
  const bool in_meta = bytes[0] / 8 % 2 == 0 || bytes[0] % 8 == 4;  // which the classic protocol cannot say
  const std::string_view answer(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  const auto whole = test::read_replies(requests, answer, answer.size(), in_meta, quiet);
  const auto pieces = test::read_replies(requests, answer, 1 + bytes[1] % 7, in_meta, quiet);
  if (whole.last != pieces.last || whole.answered != pieces.answered) std::abort();
  for (std::size_t i = 0; i < whole.answered; ++i) {
    if (!same(whole.replies[i], pieces.replies[i])) std::abort();
  }
  return 0;
}

// libFuzzer: every parser of foreign bytes but the replies, which have a target of their own. The first byte
// chooses it.
//
// sources: common/base/*.cpp common/placement/*.cpp common/placement/*/*.cpp common/primitives/*.cpp common/journal/*.cpp common/replication/*.cpp common/structures/elements/index.cpp common/structures/elements/listing.cpp common/structures/cache/entry.cpp common/structures/counter/*record.cpp common/structures/counter/sliding.cpp common/operations/map.cpp common/operations/saved.cpp common/operations/doctor/*.cpp common/operations/move/move_journal.cpp common/operations/spill_file.cpp common/structures/eventlog/format.cpp common/structures/eventlog/cursor.cpp common/structures/lock/value.cpp common/cluster/*.cpp common/cluster/*/*.cpp tools/cli/config.cpp tools/cli/input.cpp tools/cli/servers_from.cpp -lresolv -lnettle -lz -lyaml -lxxhash -lzstd
#include "tests/fuzz/parsers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  mcds::test::feed(bytes[0], {reinterpret_cast<const char*>(bytes) + 1, size - 1});
  return 0;
}

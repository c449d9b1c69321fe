// Every reader of bytes that others store, send or configure, by number: what the fuzzer and the unit test
// feed. A reader may refuse by a Failure; anything else that leaves it is a finding. What it takes must
// survive being written again.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/base/json_reader.hpp"
#include "common/base/text.hpp"
#include "common/base/units.hpp"
#include "common/cluster/credentials.hpp"
#include "common/cluster/elasticache.hpp"
#include "common/cluster/keys/live.hpp"
#include "common/cluster/keys/watch.hpp"
#include "common/cluster/statistics.hpp"
#include "common/cluster/wire/greeting.hpp"
#include "common/journal/lines.hpp"
#include "common/operations/move/move_journal.hpp"
#include "common/operations/saved.hpp"
#include "common/placement/pools/files.hpp"
#include "common/placement/pools/pool.hpp"
#include "common/primitives/active_variants.hpp"
#include "common/structures/cache/entry.hpp"
#include "common/structures/counter/record.hpp"
#include "common/structures/counter/sliding.hpp"
#include "common/structures/elements/index.hpp"
#include "common/structures/eventlog/cursor.hpp"
#include "common/structures/eventlog/format.hpp"
#include "common/structures/lock/value.hpp"
#include "tools/cli/config.hpp"
#include "tools/cli/servers_from.hpp"

namespace mcds::test {

inline void must(bool holds) {
  if (!holds) std::abort();
}

inline void read_json(std::string_view text) {
  const auto compact = compact_json(text);
  must(compact.has_value() == is_json(text));
  // The other reader takes a NUL for the end, skips a byte order mark and knows no depth.
  const bool plain = text.find('\0') == std::string_view::npos && !text.starts_with("\xef");
  const bool accepted = nlohmann::json::accept(text);
  must(!is_json(text) || accepted);
  std::size_t brackets = 0;
  for (const char c : text) brackets += c == '[' || c == '{' ? 1 : 0;
  if (plain && brackets <= 128) must(is_json(text) == accepted);
  static_cast<void>(json_elements(text));
  static_cast<void>(json_members(text));
  static_cast<void>(json_unquote(text));
  if (!compact) return;
  must(is_compact_json(*compact) && compact_json(*compact) == compact);
  must(nlohmann::json::parse(*compact) == nlohmann::json::parse(text));
}

inline void read_event(std::string_view text) {
  static_cast<void>(salvage_event_line(text));
  const auto event = parse_event_line(text);
  if (!event) return;
  JsonObject object;
  if (!event->base64 && !event->foreign) object.raw("data", event->data);
  must(is_compact_json(object.text()));
  static_cast<void>(format_time(event->id.time()));
  static_cast<void>(event->bytes());
}

inline void read_journal(std::string_view text) {
  static_cast<void>(decode_journal_lines(text));
  if (const auto root = decode_journal_root(text)) {
    const std::string again = encode(*root);
    const auto second = decode_journal_root(again);
    must(second && second->segments.size() == root->segments.size() && second->tail == root->tail);
  }
}

inline void read_cache(std::string_view text) {
  if (const auto record = decode_cache_record(text)) {
    static_cast<void>(format_time(record->stale_until));
    must(decode_cache_record(encode(*record)).has_value());
  }
}

inline void read_counter(std::string_view text) {
  if (const auto record = CounterRecord::parse(text)) must(CounterRecord::parse(record->text()).has_value());
  static_cast<void>(parse_padded_u64(text));
}

inline void read_cursor(std::string_view text) {
  const CursorState state = CursorState::parse(text, "file");
  if (!text.empty()) must(CursorState::parse(state.text(), "file") == state);
}

inline void read_units(std::string_view text) {
  const auto each = [&](auto read) {
    try {
      static_cast<void>(read());
    } catch (const InvalidInput& failure) {
      must(is_utf8(failure.what()));
    }
  };
  each([&] { return format_duration(parse_duration(text, "it")); });
  each([&] { return parse_size(text, "it"); });
  each([&] { return format_time(parse_time(text, WallTime{}, "it")); });
  each([&] { return parse_share(text, "it"); });
  must(is_visible(visible(text)));
  must(is_utf8(json_quote(text)));
}

inline void read_text(std::string_view text) {
  must(unquote_bytes(quote_bytes(text)) == text);
  static_cast<void>(unquote_bytes(text));
  must(percent_decode(percent_encode(text)) == text);
  static_cast<void>(percent_decode(text));
  std::string buffer;
  static_cast<void>(parse_metadump_line(text, buffer));
  static_cast<void>(LockValue::parse(text));
}

inline void read_dns(std::string_view text) {
  for (const ServiceRecord& record :
       parse_service_records(std::span(reinterpret_cast<const unsigned char*>(text.data()), text.size()))) {
    must(record.target.size() < 1025 && record.port < 65536 && record.weight < 65536);
  }
}

// The manifest of an index.
inline void read_index(std::string_view text) {
  if (const auto root = decode_journal_root(text)) static_cast<void>(decode_journal_lines(root->tail));
}

inline void read_configuration(std::string_view text) {
  Config config;
  read_config(std::string(text), "file", config);
}

// What servers write while they are watched, and to `stats`.
inline void read_watch(std::string_view text) {
  std::string buffer;
  const auto event = parse_watch_line(text, buffer);
  if (event) must(!event->key.empty());
  for (const char* name : {"STAT pid", "STAT curr_items", "", " "}) {
    const auto value = statistic(text, name);
    if (value) must(text.find(*value) != std::string_view::npos);
    static_cast<void>(statistic_number(text, name));
  }
}

// The first byte chooses the form of the login and whether it was asked for; the rest is what the server
// says, whole and in pieces.
inline void read_login(std::string_view text) {
  if (text.empty()) return;
  using Step = LoginExchange::Step;
  const Login login{(text[0] & 1) == 0 ? Login::Form::ascii : Login::Form::user_key, "app", "pass"};
  const auto answer = [&](std::size_t piece) {
    LoginExchange exchange(login, (text[0] & 2) != 0);
    const std::string said(text.substr(1));
    std::size_t position = 0;
    Step step = Step::need_more;
    for (std::size_t size = 0; size < said.size() && step == Step::need_more; size += piece) {
      step = exchange.read(std::string_view(said).substr(0, size + piece), position);
      must(position <= said.size());
    }
    if (step == Step::failed)
      must(!exchange.complaint().empty() &&
           exchange.complaint().find("pass") == exchange.complaint().find("password"));
    if (step == Step::need_more) must(exchange.closed() != Step::done);
    return std::pair(step, exchange.words());
  };
  must(answer(1) == answer(text.size()));
}

inline void read_greeting(std::string_view text) {
  if (text.empty()) return;
  meta::Greeting greeting(static_cast<unsigned char>(text[0]));
  ServerProtocol protocol;
  std::size_t position = 0;
  const auto decision = greeting.read(text.substr(1), position, protocol);
  must(position < text.size());
  if (decision.action == meta::Decision::Action::refuse) must(!decision.failure.message.empty());
  for (const auto begin : {meta::ProtocolProbe::Begin::greeting, meta::ProtocolProbe::Begin::classic,
                           meta::ProtocolProbe::Begin::other_protocols}) {
    meta::ProtocolProbe probe(begin);
    while (probe.next()) static_cast<void>(probe.read(text.substr(1), (text[0] & 1) != 0));
  }
}

inline void read_sliding(std::string_view text) {
  auto uses = SlidingUses::parse(text);
  if (!uses) return;
  must(SlidingUses::parse(uses->text()).has_value());
  static_cast<void>(uses->newest());
  static_cast<void>(
      uses->ask({5, std::chrono::milliseconds(1000)}, WallTime(std::chrono::seconds(1'800'000'000)), 1));
  static_cast<void>(uses->text());
}

inline void read_ring(std::string_view text) {
  if (const auto shape = RingShape::parse(text)) {
    must(RingShape::parse(shape->text()) == shape);
    static_cast<void>(shape->kept());
    static_cast<void>(shape->expiry_of(shape->chunk_of(WallTime(std::chrono::seconds(1'800'000'000)))));
  }
  if (const auto name = PartName::parse(text)) must(PartName::parse(name->text()) == name);
  const auto conf = parse_active_variants(text, WallTime{});
  must(parse_active_variants(active_variants_value(conf), WallTime{}) == conf);
}

// The journal of `ring move`, behind the line that names the move.
inline void read_move_journal(std::string_view text) {
  using moving::MoveJournal;
  static const int file = memfd_create("journal", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  static const bool begun = [] {
    MoveJournal(path, "move").write();
    return true;
  }();
  must(file >= 0 && begun);
  constexpr off_t head = 64;
  must(ftruncate(file, head) == 0);
  must(pwrite(file, text.data(), text.size(), head) == static_cast<ssize_t>(text.size()));
  MoveJournal move_journal(path, "move");
  for (std::size_t part = 0; part < move_journal.parts(); ++part) {
    move_journal.load(part);
    static_cast<void>(move_journal.find(moving::hash_of("key")));
  }
  static_cast<void>(move_journal.has_history());
}

// What a file of saved items holds, whole and in pieces.
inline void read_saved(std::string_view text) {
  const auto items = [text](std::size_t piece) {
    std::size_t position = 0;
    SavedReader reader([&](char* into, std::size_t size) {
      const std::size_t got = text.copy(into, std::min(size, piece), position);
      position += got;
      return got;
    });
    std::string all;
    while (const auto item = reader.next())
      all += item->key + ' ' + std::to_string(item->flags) + ' ' + std::to_string(item->ends_s) + ' ' +
             std::string(item->value) + '\n';
    must(reader.offset() <= text.size());
    const SavedReader::End& end = reader.end();
    return all + (end.ours ? "ours " : "") + (end.whole ? "whole " : "") + end.problem;
  };
  must(items(1 + text.size() / 3) == items(text.size() + 1));
}

constexpr std::array<void (*)(std::string_view), 29> parsers{
    read_json,
    [](std::string_view text) { must(canonical_json(canonical_json(text)) == canonical_json(text)); },
    read_event,
    [](std::string_view text) { static_cast<void>(parse_directory_line(text)); },
    [](std::string_view text) {
      static_cast<void>(parse_part_header(text, {29920568, 1}));
    },
    [](std::string_view text) { static_cast<void>(shapes_in(parse_active_variants(text, WallTime{}))); },
    read_cursor,
    read_journal,
    read_cache,
    read_counter,
    read_units,
    read_text,
    read_configuration,
    [](std::string_view text) { static_cast<void>(parse_pool(text)); },
    [](std::string_view text) { static_cast<void>(parse_nutcracker(text, "")); },
    [](std::string_view text) { static_cast<void>(parse_mcrouter(text, "")); },
    [](std::string_view text) { static_cast<void>(parse_php_ini(text)); },
    [](std::string_view text) { static_cast<void>(parse_elasticache(text)); },
    [](std::string_view text) { static_cast<void>(parse_server_list(text)); },
    read_dns,
    [](std::string_view text) {
      if (const auto payload = elasticache_payload(text)) static_cast<void>(parse_elasticache(*payload));
    },
    read_index,
    read_watch,
    read_login,
    read_greeting,
    read_sliding,
    read_ring,
    read_move_journal,
    read_saved,
};

// `text` as it is, and with the checksum that lets a mutation past the first check.
inline void feed(std::size_t parser, std::string_view text) {
  for (const std::string& given : {std::string(text), std::string(text) + " *" + checksum(text)}) {
    try {
      parsers[parser % parsers.size()](given);
    } catch (const Failure& failure) {
      must(is_utf8(failure.what()) || !is_utf8(text));
    }
  }
}

}  // namespace mcds::test

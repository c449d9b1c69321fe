#include "tests/support/memory_server.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

using std::chrono::floor;
using std::chrono::seconds;

constexpr std::int64_t max_relative = 60 * 60 * 24 * 30;
// The offset that memcached adds so that a time of 0 can mean 'never'.
constexpr std::int64_t first_second = 62;
// Values above half of the item limit of 1 MiB are stored in chunks and cannot be incremented.
constexpr std::size_t max_number_item_size = 512 * 1024;

std::size_t item_bytes(const Request& request, std::size_t value_size) {
  return 48 + 8 + request.key.size() + 1 + value_size + 2 + (request.flags != 0 ? 4 : 0);
}

// Parses like memcached's safe_strtoull: accepts leading spaces and a sign, ignores text after a blank.
std::optional<std::uint64_t> parse_number(const std::string& value) {
  if (value.empty() || value.size() > max_number_item_size) return std::nullopt;
  const std::string text = value + "\r\n";
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  if (errno == ERANGE || end == text.c_str()) return std::nullopt;
  if (std::string_view(" \t\r\n\v\f").find(*end) == std::string_view::npos) return std::nullopt;
  const bool has_sign = std::find(text.c_str(), static_cast<const char*>(end), '-') != end;
  if (has_sign && static_cast<long long>(number) < 0) return std::nullopt;
  return number;
}

}  // namespace

MemoryServer::MemoryServer(const VirtualTime& time, std::size_t index, MemoryServerOptions options)
    : time_(time), index_(index), options_(options) {
  restart();
}

std::int64_t MemoryServer::seconds() {
  const auto passed = time_.elapsed() + options_.tick_phase - tick_lag_;
  ticks_ = std::max(ticks_, floor<std::chrono::seconds>(passed).count());
  return ticks_ - started_ticks_ + first_second;
}

void MemoryServer::restart() {
  items_.clear();
  last_cas_ = 0;
  ++incarnation_;
  started_ticks_ = ticks_ = floor<std::chrono::seconds>(time_.elapsed() + options_.tick_phase).count();
  const auto wall = (time_.wall() + options_.clock_skew).time_since_epoch();
  started_wall_ = floor<std::chrono::seconds>(wall).count() - first_second;
}

void MemoryServer::flush() {
  items_.clear();
  ++last_cas_;
}

bool MemoryServer::evict(std::string_view key) {
  const auto at = items_.find(key);
  if (at == items_.end()) return false;
  items_.erase(at);
  return true;
}

std::optional<MemoryItem> MemoryServer::peek(std::string_view key) {
  const MemoryItem* item = find(key);
  return item == nullptr ? std::nullopt : std::optional(*item);
}

std::int64_t MemoryServer::expiry_of(Exptime exptime) {
  const auto wire = static_cast<std::int32_t>(exptime.wire());  // as the server truncates it
  if (wire == 0) return 0;
  if (wire < 0) return 1;
  if (wire <= max_relative) return seconds() + wire;
  return std::max<std::int64_t>(1, wire - started_wall_);
}

MemoryItem* MemoryServer::find(std::string_view key) {
  const auto at = items_.find(key);
  if (at == items_.end()) return nullptr;
  if (at->second.expires != 0 && at->second.expires <= seconds()) {
    items_.erase(at);
    return nullptr;
  }
  return &at->second;
}

bool MemoryServer::too_large(const Request& request, std::size_t value_size) const {
  return item_bytes(request, value_size) > options_.item_size;
}

bool MemoryServer::never_fits(const Request& request) const {
  switch (request.op) {
    case Op::add:
    case Op::replace:
    case Op::cas:
    case Op::append:
    case Op::append_or_create: return too_large(request, request.value.size());
    default:  // a refused set removes the old item
      return false;
  }
}

bool MemoryServer::no_room(const Request& request, std::size_t value_size) const {
  if (options_.memory_limit == 0) return false;
  std::size_t used = item_bytes(request, value_size);
  for (const auto& [key, item] : items_) used += 59 + key.size() + item.value.size();
  return used > options_.memory_limit;
}

Reply MemoryServer::refuse(const char* message) const {
  return Reply::failed_with(ReplyFailure::Kind::refused, message, index_);
}

Reply MemoryServer::execute(const Request& request) {
  assert(request.key.size() <= max_key_size);
  switch (request.op) {
    case Op::get:
    case Op::gets:
    case Op::probe: return fetch(request);
    case Op::add:
    case Op::set:
    case Op::replace:
    case Op::cas: return store(request);
    case Op::add_and_get: return store_and_fetch(request);
    case Op::append:
    case Op::append_or_create: return append(request);
    case Op::incr:
    case Op::decr:
    case Op::incr_or_create: return change(request);
    case Op::touch: return touch(request);
    case Op::remove:
    case Op::remove_if: return remove(request);
    case Op::version:
    case Op::stats: break;
  }
  return describe(request);
}

Reply MemoryServer::fetch(const Request& request) {
  MemoryItem* item = find(request.key);
  if (item == nullptr) return Reply::of(Outcome::miss, index_);
  Reply reply = Reply::of(Outcome::hit, index_);
  reply.value = item->value;
  reply.flags = item->flags;
  if (request.op != Op::get) reply.cas = {item->cas};
  if (request.op == Op::probe && options_.reports_cas) {
    reply.age.ttl = std::chrono::seconds(item->expires == 0 ? -1 : item->expires - seconds());
    reply.age.idle = std::chrono::seconds(seconds() - item->used);
  }
  if (request.op != Op::probe) item->used = seconds();
  return reply;
}

Reply MemoryServer::keep(const Request& request, std::string value) {
  MemoryItem& item = items_[request.key];
  item = {std::move(value), request.flags, expiry_of(request.exptime), seconds(), ++last_cas_};
  Reply reply = Reply::of(Outcome::stored, index_);
  if (options_.reports_cas) reply.cas = {item.cas};
  return reply;
}

Reply MemoryServer::store(const Request& request) {
  assert(request.op != Op::cas || request.cas.value != 0);
  const MemoryItem* item = find(request.key);
  const bool large = too_large(request, request.value.size());
  if (large || no_room(request, request.value.size())) {
    if (request.op == Op::set) items_.erase(request.key);
    return refuse(large ? "SERVER_ERROR object too large for cache"
                        : "SERVER_ERROR out of memory storing object");
  }
  if (request.op == Op::add && item != nullptr) return Reply::of(Outcome::not_stored, index_);
  if (request.op == Op::replace && item == nullptr) return Reply::of(Outcome::not_stored, index_);
  if (request.op == Op::cas && item == nullptr) return Reply::of(Outcome::not_found, index_);
  if (request.op == Op::cas && item->cas != request.cas.value) return Reply::of(Outcome::exists, index_);
  return keep(request, request.value);
}

Reply MemoryServer::store_and_fetch(const Request& request) {
  Request part = request;
  part.op = Op::add;
  const bool created = store(part).outcome == Outcome::stored;
  part.op = Op::gets;
  Reply reply = fetch(part);
  reply.created = created && reply.outcome == Outcome::hit;
  return reply;
}

Reply MemoryServer::append(const Request& request) {
  if (too_large(request, request.value.size())) return refuse("SERVER_ERROR object too large for cache");
  MemoryItem* item = find(request.key);
  if (item == nullptr && request.op == Op::append_or_create) {
    const std::string value = request.prefix + request.value;
    if (too_large(request, value.size())) return refuse("SERVER_ERROR object too large for cache");
    if (no_room(request, value.size())) return Reply::of(Outcome::not_stored, index_);
    Reply reply = keep(request, value);
    reply.created = true;
    return reply;
  }
  if (item == nullptr) return Reply::of(Outcome::not_stored, index_);
  const std::size_t joined = item->value.size() + request.value.size();
  if (too_large(request, joined) || no_room(request, joined)) return Reply::of(Outcome::not_stored, index_);
  item->value += request.value;
  item->cas = ++last_cas_;
  item->used = seconds();
  return Reply::of(Outcome::stored, index_);
}

Reply MemoryServer::change(const Request& request) {
  MemoryItem* item = find(request.key);
  if (item == nullptr && request.op == Op::incr_or_create && request.creates) {
    Reply reply = keep(request, std::to_string(request.initial));
    reply.created = true;
    reply.number = request.initial;
    return reply;
  }
  if (item == nullptr) return Reply::of(Outcome::not_found, index_);
  if (request.op == Op::incr_or_create && request.checked && !parse_padded_u64(item->value))
    return Reply::of_text(item->value, index_);
  const auto number = parse_number(item->value);
  if (!number) {
    return Reply::failed_with(ReplyFailure::Kind::not_a_number,
                              "CLIENT_ERROR cannot increment or decrement non-numeric value", index_);
  }
  Reply reply = Reply::of(Outcome::stored, index_);
  reply.number =
      request.op == Op::decr ? *number - std::min(*number, request.delta) : *number + request.delta;
  const std::size_t size = item->value.size();
  item->value = std::to_string(reply.number);
  if (item->value.size() < size) item->value.append(size - item->value.size(), ' ');
  item->cas = ++last_cas_;
  item->used = seconds();
  return reply;
}

Reply MemoryServer::touch(const Request& request) {
  MemoryItem* item = find(request.key);
  if (item == nullptr) return Reply::of(Outcome::not_found, index_);
  item->expires = expiry_of(request.exptime);
  item->used = seconds();
  return Reply::of(Outcome::stored, index_);
}

Reply MemoryServer::remove(const Request& request) {
  const MemoryItem* item = find(request.key);
  if (item == nullptr) return Reply::of(Outcome::not_found, index_);
  if (request.op == Op::remove_if) {
    assert(request.cas.value != 0);
    if (item->cas != request.cas.value) return Reply::of(Outcome::exists, index_);
  }
  items_.erase(request.key);
  return Reply::of(Outcome::deleted, index_);
}

Reply MemoryServer::describe(const Request& request) {
  Reply reply = Reply::of(Outcome::hit, index_);
  if (request.op == Op::version) {
    reply.value = "1.6.18";
    return reply;
  }
  const auto now = seconds();
  reply.value = "pid 1\nuptime " + std::to_string(now - first_second) + "\ntime " +
                std::to_string(started_wall_ + now) + "\nversion 1.6.18\ncurr_items " +
                std::to_string(items_.size()) + '\n';
  return reply;
}

}  // namespace mcds

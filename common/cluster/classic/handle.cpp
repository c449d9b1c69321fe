#include "common/cluster/classic/handle.hpp"

#include <algorithm>
#include <limits>

#include "common/base/errors.hpp"
#include "common/cluster/transport.hpp"

namespace mcds::classic {

namespace {

using Kind = ReplyFailure::Kind;

constexpr std::size_t keys_per_get = 1000;
// Above it the length in a reply is a lie (and libmemcached's pointer is not to be read).
constexpr std::size_t longest_reply = 1 << 30;
constexpr std::uint64_t no_back_off = 1'000'000;
// An absolute time in 1970: expires at once.
constexpr time_t long_ago = 2'592'001;
// Servers count from 1; from 2^63 on some refuse to read it.
constexpr std::uint64_t matches_nothing = std::numeric_limits<std::int64_t>::max();

bool is_fetch(Op op) {
  return op == Op::get || op == Op::gets || op == Op::probe;
}

std::uint64_t milliseconds(Duration duration) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(duration).count()));
}

const char* refusal(memcached_return_t code) {
  switch (code) {
    case MEMCACHED_E2BIG:
      return "the value is too large for the server; store less under one key or raise its -I";
    case MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE:
      return "the server is out of memory; give it more (-m) or let it evict (no -M)";
    case MEMCACHED_CLIENT_ERROR:
      return "the server answered CLIENT_ERROR; it does not take this request";
    case MEMCACHED_SERVER_ERROR:
      return "the server answered SERVER_ERROR; see its log";
    case MEMCACHED_ERROR:
      return "the server answered ERROR: it does not know this command (MemcacheDB and memcached before "
             "1.2.4 have no "
             "gets and cas) or is at its connection limit";
    default:
      return nullptr;
  }
}

bool never_sent(memcached_return_t code) {
  switch (code) {
    case MEMCACHED_HOST_LOOKUP_FAILURE:
    case MEMCACHED_BAD_KEY_PROVIDED:
    case MEMCACHED_SERVER_MARKED_DEAD:
    case MEMCACHED_INVALID_ARGUMENTS:
    case MEMCACHED_SERVER_TEMPORARILY_DISABLED:
      return true;
    default:
      return false;
  }
}

}  // namespace

Handle::Handle(const Server& server, const ConnectOptions& options)
    : library_(library()), handle_(library_.create(nullptr)) {
  if (handle_ == nullptr) throw Failure(ErrorCode::system, "no memory for a libmemcached handle");
  library_.behavior_set(handle_, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
  library_.behavior_set(handle_, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, milliseconds(options.connect_timeout));
  library_.behavior_set(handle_, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, milliseconds(options.timeout));
  library_.behavior_set(handle_, MEMCACHED_BEHAVIOR_SERVER_TIMEOUT_LIMIT, no_back_off);
  library_.behavior_set(handle_, MEMCACHED_BEHAVIOR_SERVER_FAILURE_LIMIT, no_back_off);
  if (server.is_unix())
    library_.server_add_unix_socket(handle_, server.socket_path.c_str());
  else
    library_.server_add(handle_, server.host.c_str(), server.port);
}

Handle::~Handle() {
  library_.free(handle_);
}

void Handle::drop() {
  library_.quit(handle_);
  uniques_.clear();
}

// Asking for a socket option makes libmemcached connect and send nothing.
bool Handle::connected() {
  return library_.behavior_get(handle_, MEMCACHED_BEHAVIOR_SOCKET_SEND_SIZE) != 0;
}

// After a lost reply the rest is not tried: each would wait for the server again.
void Handle::execute(Job& job) {
  const std::vector<Request>& requests = job.requests();
  lost_ = false;
  std::size_t next = 0;
  while (next < requests.size() && !lost_) {
    if (!connected()) {
      drop();
      break;
    }
    if (is_fetch(requests[next].op)) {
      const std::size_t count = fetch_run(job, next);
      if (count == 0) return;
      next += count;
      continue;
    }
    if (!job.begin(next)) return;
    job.answer(next, one(requests[next]));
    ++next;
  }
  const char* why = lost_ ? "not sent: an earlier request of the batch got no reply"
                          : "no connection; is the server running and reachable?";
  for (; next < requests.size(); ++next)
    job.answer(next, Reply::failed_with(Kind::unreachable, why, job.server()));
}

Reply Handle::one(const Request& request) {
  switch (request.op) {
    case Op::add:
    case Op::set:
    case Op::replace:
    case Op::append:
      return store(request);
    case Op::cas:
    case Op::remove_if:
      return compare(request);
    case Op::incr:
    case Op::decr:
      return count(request);
    case Op::touch:
    case Op::remove:
      return plain(request);
    case Op::version:
      return version();
    case Op::stats:
      return stats(request);
    default:
      break;
  }
  return Reply::failed_with(Kind::refused, "the classic protocol has no such command", 0);
}

Reply Handle::failure(memcached_return_t code, Op op) {
  drop();
  if (code == MEMCACHED_CLIENT_ERROR && (op == Op::incr || op == Op::decr))
    return Reply::failed_with(Kind::not_a_number, "the stored value is no number; it was not changed", 0);
  if (const char* why = refusal(code)) return Reply::failed_with(Kind::refused, why, 0);
  if (never_sent(code))
    return Reply::failed_with(Kind::unreachable, "no connection; is the server reachable?", 0);
  lost_ = true;
  const bool late = code == MEMCACHED_TIMEOUT || code == MEMCACHED_ERRNO;
  const std::string why = late ? "no reply within the timeout; the server is stopped, overloaded or cut off"
                               : "no valid reply; the connection broke or this is no memcached";
  if (changes_nothing(op)) return Reply::failed_with(Kind::unreachable, why, 0, late);
  return Reply::failed_with(Kind::unknown, why + std::string(may_be_applied), 0, late);
}

Reply Handle::store(const Request& request) {
  const auto function = request.op == Op::add       ? library_.add
                        : request.op == Op::set     ? library_.set
                        : request.op == Op::replace ? library_.replace
                                                    : library_.append;
  const memcached_return_t code =
      function(handle_, request.key.data(), request.key.size(), request.value.data(), request.value.size(),
               request.exptime.wire(), request.flags);
  if (code == MEMCACHED_SUCCESS) return Reply::of(Outcome::stored, 0);
  if (code == MEMCACHED_NOTSTORED && request.op != Op::set) return Reply::of(Outcome::not_stored, 0);
  // As pogocache says it.
  const bool changes = request.op == Op::replace || request.op == Op::append;
  if (code == MEMCACHED_NOTFOUND && changes) return Reply::of(Outcome::not_stored, 0);
  return failure(code, request.op);
}

Reply Handle::compare(const Request& request) {
  const auto found = uniques_.find(request.key);
  const bool known = found != uniques_.end() && found->second == request.cas.value;
  if (!known) return Reply::of(Outcome::exists, 0);
  uniques_.erase(found);
  const bool removes = request.op == Op::remove_if;
  const memcached_return_t code = library_.cas(
      handle_, request.key.data(), request.key.size(), request.value.data(),
      removes ? 0 : request.value.size(), removes ? long_ago : static_cast<time_t>(request.exptime.wire()),
      request.flags, request.cas.value);
  if (code == MEMCACHED_SUCCESS) return Reply::of(removes ? Outcome::deleted : Outcome::stored, 0);
  if (code == MEMCACHED_DATA_EXISTS) return Reply::of(Outcome::exists, 0);
  if (code == MEMCACHED_NOTFOUND) return Reply::of(Outcome::not_found, 0);
  return failure(code, request.op);
}

Reply Handle::count(const Request& request) {
  const auto function = request.op == Op::incr ? library_.increment_by_key : library_.decrement_by_key;
  constexpr std::uint64_t no_number = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t value = no_number;
  const memcached_return_t code = function(handle_, request.key.data(), request.key.size(),
                                           request.key.data(), request.key.size(), request.delta, &value);
  if (code == MEMCACHED_NOTFOUND) return Reply::of(Outcome::not_found, 0);
  // Any reply that is no number is a success with this value.
  if (code != MEMCACHED_SUCCESS) return failure(code, request.op);
  if (value == no_number) return failure(MEMCACHED_PROTOCOL_ERROR, request.op);
  Reply reply = Reply::of(Outcome::stored, 0);
  reply.number = value;
  return reply;
}

Reply Handle::plain(const Request& request) {
  const bool touches = request.op == Op::touch;
  // Any line that begins with digits is a success, and leaves its number here.
  constexpr std::uint64_t no_number = std::numeric_limits<std::uint64_t>::max();
  handle_->result.numeric_value = no_number;
  const memcached_return_t code =
      touches ? library_.touch(handle_, request.key.data(), request.key.size(), request.exptime.wire())
              : library_.remove(handle_, request.key.data(), request.key.size(), 0);
  if (handle_->result.numeric_value != no_number) return failure(MEMCACHED_PROTOCOL_ERROR, request.op);
  if (code == MEMCACHED_SUCCESS) return Reply::of(touches ? Outcome::stored : Outcome::deleted, 0);
  if (code == MEMCACHED_NOTFOUND) return Reply::of(Outcome::not_found, 0);
  return failure(code, request.op);
}

Reply Handle::version() {
  drop();  // libmemcached asks once per connection and remembers
  const memcached_return_t code = library_.version(handle_);
  const auto* server = library_.server_instance_by_position(handle_, 0);
  const auto major = library_.server_major_version(server);
  if (code != MEMCACHED_SUCCESS || major == std::numeric_limits<std::uint8_t>::max())
    return failure(code == MEMCACHED_SUCCESS ? MEMCACHED_PROTOCOL_ERROR : code, Op::version);
  Reply reply = Reply::of(Outcome::hit, 0);
  reply.value = std::to_string(major) + '.' + std::to_string(library_.server_minor_version(server)) + '.' +
                std::to_string(library_.server_micro_version(server));
  return reply;
}

Reply Handle::stats(const Request& request) {
  Reply reply = Reply::of(Outcome::hit, 0);
  const auto line = [](const memcached_instance_st*, const char* key, std::size_t key_size, const char* value,
                       std::size_t value_size, void* context) {
    auto& text = *static_cast<std::string*>(context);
    text.append(key, key_size).append(1, ' ').append(value, value_size).append(1, '\n');
    return MEMCACHED_SUCCESS;
  };
  const memcached_return_t code =
      library_.stat_execute(handle_, request.key.empty() ? nullptr : request.key.c_str(), line, &reply.value);
  if (code != MEMCACHED_SUCCESS) return failure(code, Op::stats);
  if (reply.value.empty() && request.key.empty()) return failure(MEMCACHED_ERROR, Op::stats);
  return reply;
}

// As many fetches in a row of one kind as one multi-get takes; 0 when the caller has gone.
std::size_t Handle::fetch_run(Job& job, std::size_t first) {
  const std::vector<Request>& requests = job.requests();
  const bool with_cas = requests[first].op != Op::get;
  std::size_t count = 1;
  while (count < keys_per_get && first + count < requests.size()) {
    const Op op = requests[first + count].op;
    if (!is_fetch(op) || (op != Op::get) != with_cas) break;
    ++count;
  }
  if (!job.begin(first, count)) return 0;
  fetch(job, first, count);
  return count;
}

void Handle::fetch(Job& job, std::size_t first, std::size_t count) {
  const std::vector<Request>& requests = job.requests();
  const bool with_cas = requests[first].op != Op::get;
  std::unordered_multimap<std::string_view, std::size_t> wanted;
  std::vector<const char*> keys;
  std::vector<std::size_t> sizes;
  for (std::size_t i = first; i < first + count; ++i) {
    const bool again = wanted.contains(requests[i].key);
    wanted.emplace(requests[i].key, i);
    if (again) continue;
    keys.push_back(requests[i].key.data());
    sizes.push_back(requests[i].key.size());
  }
  library_.behavior_set(handle_, MEMCACHED_BEHAVIOR_SUPPORT_CAS, with_cas ? 1 : 0);
  const memcached_return_t code = library_.mget(handle_, keys.data(), sizes.data(), keys.size());
  Reply missing = Reply::of(Outcome::miss, 0);
  if (code != MEMCACHED_SUCCESS) {
    missing = failure(code, Op::get);
  } else if (!collect(job, wanted, with_cas)) {
    const memcached_return_t last = library_.last_error(handle_);
    missing = failure(last == MEMCACHED_SUCCESS ? MEMCACHED_PROTOCOL_ERROR : last, Op::get);
  } else if (!wanted.empty()) {
    const std::string key(wanted.begin()->first);
    Reply otherwise;
    if (!confirms_misses(key, with_cas, otherwise)) missing = std::move(otherwise);
  }
  for (const auto& [key, index] : wanted) job.answer(index, missing);
}

// Answers what came, once the end has come too; false when something came that must not, or no end.
bool Handle::collect(Job& job, std::unordered_multimap<std::string_view, std::size_t>& wanted,
                     bool with_cas) {
  memcached_return_t code = MEMCACHED_SUCCESS;
  std::vector<std::pair<std::string, Reply>> came;
  while (memcached_result_st* result = library_.fetch_result(handle_, nullptr, &code)) {
    const std::size_t size = library_.result_length(result);
    std::string key(library_.result_key_value(result), library_.result_key_length(result));
    if (!wanted.contains(key) || size > longest_reply) return false;
    Reply reply = Reply::of(Outcome::hit, 0);
    if (size > 0) reply.value.assign(library_.result_value(result), size);
    reply.flags = library_.result_flags(result);
    if (with_cas) reply.cas = {library_.result_cas(result)};
    library_.result_free(result);
    came.emplace_back(std::move(key), std::move(reply));
    job.note_progress();
  }
  const bool ended = code == MEMCACHED_NOTFOUND || code == MEMCACHED_END || code == MEMCACHED_SUCCESS;
  if (!ended || library_.last_error(handle_) != MEMCACHED_SUCCESS) return false;
  for (auto& [key, reply] : came) {
    const auto [begin, end] = wanted.equal_range(key);
    if (with_cas) uniques_[key] = reply.cas.value;
    for (auto one = begin; one != end; ++one) job.answer(one->second, reply);
    wanted.erase(begin, end);
  }
  return true;
}

bool Handle::confirms_misses(const std::string& key, bool with_cas, Reply& otherwise) {
  const memcached_return_t code =
      library_.cas(handle_, key.data(), key.size(), "", 0, long_ago, 0, matches_nothing);
  if (code == MEMCACHED_NOTFOUND || code == MEMCACHED_DATA_EXISTS) return true;
  otherwise = failure(code, Op::get);
  if (code != MEMCACHED_ERROR || with_cas) return false;
  // A server without cas; one that says ERROR to everything fails here too.
  return version().outcome == Outcome::hit;
}

}  // namespace mcds::classic

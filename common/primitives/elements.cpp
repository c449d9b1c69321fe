#include "common/primitives/elements.hpp"

#include <algorithm>

#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr int most_rounds = 6;
constexpr std::size_t first_window = 1024;
constexpr std::size_t largest_window = 4096;
constexpr std::size_t window_bytes = 4 << 20;

std::optional<Failure> failure_of(const Cluster& cluster, const Reply& reply) {
  try {
    expect(cluster, reply);
  } catch (const Failure& failure) {
    return failure;
  }
  return std::nullopt;
}

std::string base_of(const Context& context, std::string_view structure, std::string_view name) {
  if (name.ends_with(":v"))
    throw InvalidInput("the name must not end in \":v\": its index could be another's element");
  return structure_key(context, structure, name);
}

}  // namespace

// One element on its way through set().
struct Elements::Setting {
  const Element* element = nullptr;
  ElementResult result;
  bool done = false;
  bool listed = false;
  SteadyTime listed_at{};

  void fail(Failure failure) {
    result.failure = std::move(failure);
    done = true;
  }
};

Elements::Elements(const Context& context, std::string_view structure, std::string_view name, bool alone)
    : context_(context),
      base_(base_of(context, structure, name)),
      values_base_(base_ + ":v"),
      alone_(alone),
      index_(context, base_, [this](std::span<const std::string> names) {
        std::vector<bool> present;
        for (const ElementResult& result : get(names)) present.push_back(result.yes || result.failure);
        return present;
      }, alone) {}

void Elements::check(const Element& element) {
  const auto limit = [](const char* what, std::size_t size, std::size_t most) {
    if (size <= most) return;
    throw Failure(ErrorCode::bad_data, std::string(what) + " may have at most " + std::to_string(most) +
                                           " bytes, this one has " + std::to_string(size));
  };
  limit("an element's name", element.name.size(), max_element_size);
  limit("a value", element.value.size(), max_value_size);
}

std::string Elements::key_of(std::string_view name) const {
  return element_key(values_base_, name);
}

std::vector<ElementResult> Elements::set(std::span<const Element> elements, bool relist) {
  std::vector<Setting> all(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) all[i].element = &elements[i];
  if (relist) {
    std::vector<Setting*> each;
    for (Setting& one : all) each.push_back(&one);
    list_missing(each);
  }
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<Setting*> missing = replace_existing(all);
    list_missing(missing);
    if (missing.empty()) break;
    add_missing(missing);
  }
  if (!alone_) list_failed(all);
  std::vector<ElementResult> results;
  results.reserve(all.size());
  for (Setting& one : all) {
    if (!one.done)
      one.fail(Contention("others keep creating and removing this element; it was not set, try again"));
    results.push_back(std::move(one.result));
  }
  return results;
}

std::vector<std::string> Elements::restore(std::span<const Element> elements) {
  std::vector<Setting> all(elements.size());
  std::vector<Setting*> missing;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    all[i].element = &elements[i];
    missing.push_back(&all[i]);
  }
  list_missing(missing);
  if (!missing.empty()) add_missing(missing);
  std::vector<std::string> added;
  for (const Setting& one : all) {
    if (one.result.yes && !one.result.failure) added.push_back(one.element->name);
  }
  return added;
}

void Elements::list(std::span<const Element> elements) {
  std::vector<const std::string*> names;
  for (const Element& element : elements) names.push_back(&element.name);
  for (const auto& failure : index_.list(names)) {
    if (failure) throw Failure(*failure);
  }
}

// Those that there are none of.
std::vector<Elements::Setting*> Elements::replace_existing(std::vector<Setting>& all) const {
  std::vector<Setting*> open;
  std::vector<Request> batch;
  batch.reserve(all.size());
  for (Setting& one : all) {
    if (one.done) continue;
    open.push_back(&one);
    batch.push_back(Request::replace(key_of(one.element->name), one.element->value, Exptime::never()));
  }
  if (batch.empty()) return {};
  const auto replies = context_.cluster.execute(batch);
  std::vector<Setting*> missing;
  for (std::size_t i = 0; i < open.size(); ++i) {
    Setting& one = *open[i];
    one.result.server = replies[i].server;
    one.result.failure = failure_of(context_.cluster, replies[i]);
    one.done = replies[i].outcome != Outcome::not_stored;
    one.result.listed = one.result.listed || replies[i].outcome == Outcome::stored;
    if (!one.done) missing.push_back(&one);
  }
  return missing;
}

// Leaves those that are listed.
void Elements::list_missing(std::vector<Setting*>& missing) {
  std::vector<Setting*> unlisted;
  std::vector<const std::string*> names;
  for (Setting* one : missing) {
    if (one->listed) continue;
    unlisted.push_back(one);
    names.push_back(&one->element->name);
  }
  if (names.empty()) return;
  const SteadyTime before = context_.clock.steady();
  const auto failures = index_.list(names);
  for (std::size_t i = 0; i < unlisted.size(); ++i) {
    unlisted[i]->listed = true;
    unlisted[i]->listed_at = before;
    unlisted[i]->result.listed = !failures[i];
    if (failures[i] && alone_) unlisted[i]->fail(*failures[i]);
  }
  std::erase_if(missing, [](const Setting* one) { return one->done; });
}

// Of those whose keys failed, so that another copy's element is listed here.
void Elements::list_failed(std::vector<Setting>& all) {
  std::vector<Setting*> failed;
  for (Setting& one : all) {
    if (one.done && one.result.failure && !one.listed) failed.push_back(&one);
  }
  list_missing(failed);
}

void Elements::add_missing(std::vector<Setting*>& missing) {
  std::vector<Request> batch;
  batch.reserve(missing.size());
  for (const Setting* one : missing)
    batch.push_back(Request::add(key_of(one->element->name), one->element->value, Exptime::never()));
  const auto replies = context_.cluster.execute(batch);
  const SteadyTime after = context_.clock.steady();
  std::vector<Setting*> late;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    Setting& one = *missing[i];
    one.result.failure = failure_of(context_.cluster, replies[i]);
    one.result.yes = replies[i].outcome == Outcome::stored;
    one.done = replies[i].outcome != Outcome::not_stored;
    if (one.result.yes && after - one.listed_at > ElementIndex::grace / 2) late.push_back(&one);
  }
  list_again(late);
}

void Elements::list_again(std::span<Setting* const> late) {
  if (late.empty()) return;
  std::vector<const std::string*> names;
  for (const Setting* one : late) names.push_back(&one->element->name);
  const auto failures = index_.list(names);
  for (std::size_t i = 0; i < late.size(); ++i) {
    if (failures[i])
      late[i]->fail(
          UnknownOutcome("it is set, but took so long that it may not be listed; set it again with --relist",
                         failures[i]->server()));
  }
}

std::vector<ElementResult> Elements::get(std::span<const std::string> names) const {
  std::vector<Request> batch;
  batch.reserve(names.size());
  for (const std::string& name : names) batch.push_back(Request::get(key_of(name)));
  auto replies = context_.cluster.execute(batch);
  std::vector<ElementResult> results(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    results[i].server = replies[i].server;
    results[i].yes = replies[i].outcome == Outcome::hit;
    try {
      expect_read(context_.cluster, replies[i]);
    } catch (const Failure& failure) {
      results[i].failure = failure;
    }
    results[i].value = std::move(replies[i].value);
  }
  return results;
}

std::vector<ElementResult> Elements::remove(std::span<const std::string> names) const {
  std::vector<Request> batch;
  batch.reserve(names.size());
  for (const std::string& name : names) batch.push_back(Request::remove(key_of(name)));
  const auto replies = context_.cluster.execute(batch);
  std::vector<ElementResult> results(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    results[i].server = replies[i].server;
    results[i].yes = replies[i].outcome == Outcome::deleted;
    results[i].failure = failure_of(context_.cluster, replies[i]);
  }
  return results;
}

// Names from the index, turned into elements a window at a time.
class Elements::Fetching {
 public:
  Fetching(const Elements& elements, const Visit& visit) : elements_(elements), visit_(visit) {}

  void take(std::string name, std::size_t shard) {
    names_.push_back(std::move(name));
    shard_ = shard;
    if (names_.size() >= window_) flush();
  }

  void flush() {
    if (names_.empty()) return;
    auto results = elements_.get(names_);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].failure) throw Failure(*results[i].failure);
      if (!results[i].yes) continue;
      ++present_;
      bytes += results[i].value.size();
      Found found{std::move(names_[i]), std::move(results[i].value), results[i].server, shard_};
      visit_(found);
    }
    // Large values make small windows.
    window_ = std::clamp(window_bytes / (bytes / names_.size() + 1), std::size_t{16}, largest_window);
    names_.clear();
  }

  std::size_t present() const { return present_; }

 private:
  const Elements& elements_;
  const Visit& visit_;
  std::vector<std::string> names_;
  std::size_t window_ = first_window;
  std::size_t shard_ = 0;
  std::size_t present_ = 0;
};

Elements::Listing Elements::fetch(const Visit& visit) const {
  Fetching fetching(*this, visit);
  Listing listing;
  listing.index =
      index_.read([&](std::string name, std::size_t shard) { fetching.take(std::move(name), shard); });
  fetching.flush();
  listing.present = fetching.present();
  return listing;
}

std::size_t Elements::clear() {
  std::size_t removed = 0;
  std::vector<std::string> names;
  const auto flush = [&] {
    for (const ElementResult& result : remove(names)) {
      if (result.failure) throw Failure(*result.failure);
      removed += result.yes ? 1 : 0;
    }
    names.clear();
  };
  const auto reading = index_.read([&](std::string name, std::size_t) {
    names.push_back(std::move(name));
    if (names.size() >= largest_window) flush();
  });
  if (!names.empty()) flush();
  if (!reading.complete()) index_.accept();
  static_cast<void>(index_.compact());
  return removed;
}

}  // namespace mcds

// Implements `mcds __complete WORD…` for the completion scripts of the shells. Never touches the network.

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/operations/doctor/checks.hpp"
#include "common/placement/pools/pool.hpp"
#include "common/placement/profiles/profile.hpp"
#include "common/values/values.hpp"
#include "tools/cli/parse.hpp"

namespace mcds {

namespace {

using Words = std::vector<std::string>;

const OptionSpec* find_option(const std::vector<OptionSpec>& options, const std::string& word) {
  const auto found =
      std::ranges::find_if(options, [&](const OptionSpec& option) { return option.is_called(word); });
  return found == options.end() ? nullptr : &*found;
}

class Completion {
 public:
  explicit Completion(const Words& words)
      : words_(words), last_(words.empty() ? std::string() : words.back()) {}

  Words run() {
    read_words();
    const auto dashes = std::ranges::find(words_, "--");
    if (dashes != words_.end() && words_.end() - dashes > 1) {
      if (verb_ != nullptr && verb_->child_target() != nullptr) {
        found_.push_back("!command " + std::to_string(dashes - words_.begin() + 1));
      }
      return found_;
    }
    if (awaiting_ != nullptr) {
      offer_value(*awaiting_, last_, "");
    } else if (last_.starts_with("--") && last_.find('=') != std::string::npos) {
      const std::string name = last_.substr(0, last_.find('='));
      if (const OptionSpec* option = find_option(options_, name))
        offer_value(*option, last_.substr(name.size() + 1), name + '=');
    } else if (last_.starts_with('-')) {
      offer_options();
    } else {
      offer_words();
    }
    return found_;
  }

 private:
  // Adds a candidate. It may come from a file, so it must not look like a directive or contain controls.
  void offer(const std::string& word, const std::string& typed, std::string_view help,
             const std::string& before = "") {
    if (word.starts_with(typed) && is_visible(word) && !(before + word).starts_with('!'))
      found_.push_back(before + word + '\t' + visible(help));
  }

  // Reads the words before the cursor: the command, the verb, and whether an option waits for its value.
  void read_words() {
    options_ = global_options(globals_);
    for (std::size_t i = 0; i + 1 < words_.size() && words_[i] != "--"; ++i) {
      if (words_[i].size() > 1 && words_[i][0] == '-') {
        const OptionSpec* option = find_option(options_, words_[i]);
        if (option == nullptr || option->value.empty()) continue;
        awaiting_ = i + 2 == words_.size() ? option : nullptr;
        if (words_[i] == "--config" && i + 2 < words_.size()) globals_.config = words_[i + 1];
        if ((words_[i] == "-s" || words_[i] == "--servers") && i + 2 < words_.size())
          globals_.servers = words_[i + 1];
        ++i;
      } else if (command_ == nullptr) {
        enter(words_[i]);
      } else if (verb_ == nullptr || verb_->name().empty()) {
        if (const Verb* verb = command_->find(words_[i]); verb != nullptr && !words_[i].empty()) use(verb);
      }
    }
  }

  void enter(const std::string& name) {
    command_ = declared(name);
    if (command_ != nullptr && command_->find("") != nullptr) use(command_->find(""));
  }

  void use(const Verb* verb) {
    verb_ = verb;
    options_ = options_with(*verb, global_options(globals_));
  }

  void offer_options() {
    for (const OptionSpec& option : options_) {
      for (const std::string_view name : split(option.names, ',')) {
        if (name.starts_with("--") || last_ == "-") offer(std::string(name), last_, option.help);
      }
    }
    offer("--help", last_, "examples, options and fields");
    offer("--schema", last_, "a JSON Schema of the answer");
    if (command_ == nullptr) offer("--version", last_, "the version of mcds");
    if (verb_ != nullptr && verb_->child_target() != nullptr) offer("--", last_, "the command to run");
  }

  void offer_words() {
    if (command_ == nullptr) {
      for (const CommandEntry& entry : all_commands()) offer(entry.name, last_, entry.summary);
      return;
    }
    for (const auto& verb : command_->verbs()) {
      const bool open = verb_ == nullptr || verb_->name().empty();
      if (open && !verb->name().empty()) offer(verb->name(), last_, verb->summary());
    }
    if (std::ranges::find(words_, "--stats") != words_.end())
      for (const char* which : {"settings", "items", "slabs", "conns"}) offer(which, last_, "");
    if (last_.starts_with('@')) found_.emplace_back("!files");
  }

  void offer_value(const OptionSpec& option, const std::string& typed, const std::string& before) {
    for (const std::string& choice : option.choices()) offer(choice, typed, "", before);
    if (option.is_called("--decode"))
      for (const ValueFormat& format : value_formats())
        offer(std::string(format.name), typed, format.clients, before);
    // Completes the last item of PROFILE[,PROFILE…], SERVER[,SERVER…] and CHECK,….
    const std::size_t last = typed.rfind(',') + 1;
    if (option.value == "PROFILE" || option.names == "--as-to" || option.names == "--as-from") {
      offer_profiles(typed.substr(last), before + typed.substr(0, last));
    } else if (option.value.starts_with("CHECK")) {
      for (const doctor::Check& check : doctor::all_checks())
        offer(check.name, typed.substr(last), check.about, before + typed.substr(0, last));
    } else if (option.names.ends_with("--pool") || option.names.ends_with("-pool")) {
      offer_pools(typed, before);
    } else if (option.names.ends_with("servers-from")) {
      for (const char* kind :
           {"nutcracker:", "mcrouter:", "php-ini:", "django:", "oslo:", "json:", "libketama:", "file:",
            "dns:", "dnssrv:", "elasticache:", "dsn:", "dalli:", "env:", "libmemcached:"})
        offer(kind, typed, "", before);
    } else if (option.names == "--down" || option.names == "--on") {
      offer_servers(typed.substr(last), before + typed.substr(0, last));
    } else if (option.value == "FILE") {
      found_.emplace_back("!files");
    }
  }

  void offer_profiles(const std::string& typed, const std::string& before) {
    for (const Alias& alias : all_aliases())
      offer(std::string(alias.name), typed, std::string(alias.profile), before);
    for (const Profile& profile : all_profiles())
      offer(std::string(profile.name), typed, std::string(profile.client->name), before);
  }

  // Offers the servers of a list that is given or set. A list that must be fetched is not fetched.
  void offer_servers(const std::string& typed, const std::string& before) {
    for (const char* variable : {"MCDS_SERVERS", "MEMCACHED_SERVERS"}) {
      if (!globals_.servers) globals_.servers = environment(variable);
    }
    // The command itself will report the problem of a list.
    static_cast<void>(attempt([&] {
      if (!globals_.servers) globals_.servers = load_config(globals_.config).text("", "servers");
      for (const Server& server : globals_.servers ? parse_pool(*globals_.servers) : Pool())
        offer(server.label(), typed, server.address(), before);
    }));
  }

  void offer_pools(const std::string& typed, const std::string& before) {
    // A broken config has no pools to offer. The command itself will report the problem.
    static_cast<void>(attempt([&] {
      const Config config = load_config(globals_.config);
      for (const auto& [section, settings] : config.sections) {
        if (section.starts_with("pool "))
          offer(section.substr(5), typed, config.text(section, "servers").value_or(""), before);
      }
    }));
  }

  const Words& words_;
  std::string last_;
  GlobalOptions globals_;
  std::vector<OptionSpec> options_;
  std::unique_ptr<Command> command_;
  const Verb* verb_ = nullptr;
  const OptionSpec* awaiting_ = nullptr;
  Words found_;
};

}  // namespace

std::vector<std::string> completions(const std::vector<std::string>& words) {
  // A configuration that is a pipe without a writer must not block the shell.
  const auto limits = std::make_shared<RunLimits>();
  limits->set_deadline(SystemClock().steady() + std::chrono::seconds(1));
  bound_input(limits);
  std::vector<std::string> found = Completion(words).run();
  bound_input(std::make_shared<RunLimits>());
  return found;
}

}  // namespace mcds

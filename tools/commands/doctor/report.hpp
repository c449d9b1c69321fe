// The doctor's findings as the user wants to have them: those accepted, those that are new, and the forms of
// output.
#pragma once

#include <map>

#include "common/operations/doctor/checks.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

class DoctorReport {
 public:
  DoctorReport(Session& session, const doctor::Examination& seen, std::vector<doctor::Symptom> found,
               std::vector<doctor::Unknown> unknown);

  // What the configuration accepts is a note: of a finding of several servers those that it names.
  void accept(const std::string& accepted);
  // Leaves what is not in this file, and writes all into it; a file that is not there yet has nothing in it.
  // Throws Failure.
  void compare_with(const std::string& file);
  // Prints it; 2 with a problem or a warning.
  ExitStatus print();

 private:
  using Known = std::map<std::string, doctor::Severity>;

  std::string label(std::size_t server, bool for_people) const;
  std::vector<std::string> labels(const doctor::Symptom& symptom, bool for_people) const;
  std::string advice(const doctor::Symptom& symptom) const;
  JsonObject line_of(const doctor::Symptom& symptom) const;
  JsonObject summary() const;
  std::string paragraph(const doctor::Symptom& symptom) const;
  std::string last_paragraph() const;
  std::string metrics() const;
  std::uint64_t count(doctor::Severity severity) const;
  // The servers of `symptom` for which `leaves` holds, and what was found of them; nothing: none.
  template <typename Leaves>
  std::vector<doctor::Symptom> part_of(const doctor::Symptom& symptom, const Leaves& leaves) const;

  Session& session_;
  const doctor::Examination& seen_;
  std::vector<doctor::Symptom> found_;
  std::vector<doctor::Unknown> unknown_;
};

// Text in lines of at most 80 columns that begin with `indent` blanks.
std::string doctor_lines(const std::string& text, std::size_t indent);

}  // namespace mcds

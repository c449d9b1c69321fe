# bash completion: asks the binary, which knows its own words and never touches the network for them.
_mcds() {
  local line candidates number word last split rest
  local -a files words
  COMPREPLY=()
  # The shell splits --as=NAME and HOST:PORT: what no blank separates is one word, and only what stands behind the
  # last = or : of it is replaced.
  rest=${COMP_LINE#*"${COMP_WORDS[0]}"}
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $rest == [[:blank:]]* || ${#words[@]} -eq 0 ]]; then words+=("$word"); else words[-1]+=$word; fi
    rest=${rest#"${rest%%[![:blank:]]*}"}
    rest=${rest#"$word"}
  done
  last=${word#[=:]}
  split=${words[-1]%"$last"}
  mapfile -t candidates < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
  for line in "${candidates[@]}"; do
    case $line in
      '!files')
        mapfile -t files < <(compgen -f -- "${last#@}")
        COMPREPLY+=("${files[@]}")
        compopt -o filenames 2>/dev/null
        ;;
      '!command '*)
        number=1
        while ((number < COMP_CWORD)) && [[ ${COMP_WORDS[number]} != -- ]]; do ((++number)); done
        if declare -F _command_offset >/dev/null; then
          _command_offset $((number + 1))
        else
          mapfile -t COMPREPLY < <(compgen -c -- "$last")
        fi
        return
        ;;
      *)
        # What the shell would take for more than a word must be quoted.
        word=${line%%$'\t'*}
        word=${word#"$split"}
        [[ $word == *[!A-Za-z0-9_./:,=@%+-]* ]] && printf -v word %q "$word"
        COMPREPLY+=("$word")
        ;;
    esac
  done
}
complete -o nosort -F _mcds mcds 2>/dev/null || complete -F _mcds mcds

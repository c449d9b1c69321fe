# bash completion: asks the binary, which knows its own words and never touches the network for them.
_mcds() {
  local line candidates number word
  local -a files
  COMPREPLY=()
  mapfile -t candidates < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  for line in "${candidates[@]}"; do
    case $line in
      '!files')
        mapfile -t files < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]#@}")
        COMPREPLY+=("${files[@]}")
        compopt -o filenames 2>/dev/null
        ;;
      '!command '*)
        number=${line#* }
        [[ $number =~ ^[0-9]+$ ]] || continue # a number, before it is calculated with
        if declare -F _command_offset >/dev/null; then
          _command_offset $((number + 1))
        else
          mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
        fi
        return
        ;;
      *)
        # What the shell would take for more than a word must be quoted.
        word=${line%%$'\t'*}
        [[ $word == *[!A-Za-z0-9_./:,=@%+-]* ]] && printf -v word %q "$word"
        COMPREPLY+=("$word")
        ;;
    esac
  done
}
complete -o nosort -F _mcds mcds 2>/dev/null || complete -F _mcds mcds

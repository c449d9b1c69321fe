# fish completion: asks the binary, which knows its own words and never touches the network for them.
function __mcds_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
        switch $line
            case '!files'
                __fish_complete_path (commandline -ct)
            case '!command *'
                # A number, before it is calculated with.
                set -l number (string match -r '^!command ([0-9]+)$' -- $line)[2]
                test -n "$number"; and __fish_complete_subcommand --commandline $words[(math $number + 2)..-1]
            case '*'
                echo $line
        end
    end
end
complete -c mcds -f -a '(__mcds_complete)'

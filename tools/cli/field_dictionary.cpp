#include "tools/cli/fields.hpp"

namespace mcds {

constexpr std::string_view field_dictionary = R"(@placed key server index hash profile
@where @placed copies:{server index}[]?
@copies copies? degraded?
@dropped dropped unfinished?
@lease token ttl_s expires_at expires_at_s fence?
@result result exit_code signal?
@age ttl_s:number|null expires:boolean|null idle_s:number|null
@saved keys saved:integer expired:integer vanished failed
@loaded loaded there failed unknown:integer
@moved copied already updated united gone left:integer
@speed duration_s items_per_s?
@removal kept selection unfinished?
@owners servers? policy? wire_key? wire_keys?
@events events_per_s gets_per_s misses_per_s stores_per_s refused_per_s deletes_per_s evictions_per_s
@sum keys size_bytes share size_median_bytes size_p99_bytes size_max_bytes idle_median_s never_expires_share
@explain client selected_by distribution points:integer? point_index? point? step? order same_as? fragile?
@copy server has? found? held? removed? expired? stored? value:integer? error:{code message}?
@rates gets_per_s? hit_ratio? sets_per_s? evictions_per_s? expired_unfetched_per_s? @traffic @sizes @full
@full listen_disabled? out_of_memory?
@traffic received_bytes_per_s? sent_bytes_per_s?
@sizes items? used_bytes? limit_bytes? connections? max_connections?
about object what the last record of the file says
accepted boolean true: the pool's configuration accepts this finding
acquired boolean whether the lock was taken
acquired_at time when the holder took it
added boolean false: it was a member already
adds integer values that were added
advice string what to do about it
after integer|null items on the server now
agreement number share of the keys that are where this client puts them
alias string another name of a profile
alike_here_only string[] profiles that agree only on this pool
allowed boolean whether it is allowed
already integer items that the new server had already
also string[] profiles that place keys alike on every pool
array bytes the array
arrived integer keys that only clients of the new list look for here
astray integer keys that are not where this client places them
at time when it was
at_s integer the same in whole seconds of Unix time
away_s number how long the server did not answer
before bytes the value before
behind_after integer|null how many keys tell this client from the first
begins boolean true: of an audit file, that it begins
belongs_on string the server on which the client looks for it
busy boolean true: another caller rebuilds it
by_chance number share of the keys that would be there by chance
bytes integer size of the file
cache bytes the entry
canonical string the parameters as canonical JSON
cas string the cas unique
certificate string file of the client certificate
certificate_ends_at time when the server's certificate ends
changed boolean|integer whether it has changed
check string the check
checks string[] the checks that were left out
chunk_bytes integer|null memory of each item of this slab class; null: items of several chunks
chunk_s integer length of a chunk
chunks integer chunks for which every event is kept
chunks_used integer chunks that have events
client string the client library
clients string the clients that write this format, with the versions compared
code string kind of the failure
compared boolean false: the copies are not compared, since each has its own bytes
complete boolean whether nothing is missing
compressions string flags=compression, in the order in which they are tried
connections integer open connections
copied integer items that were copied
copies {@copy}[]|integer each copy's answer; 1: there is one copy, whatever --copies says
copies_whole boolean whether every copy has the whole index now
cost number share by which watching made a request slower
count integer how many there are
counted boolean whether this visit counts
counter bytes the counter
coverage number|null share of what happened that was seen
created boolean whether it did not exist before
current integer count of the running period so far
damaged_lines integer lines that could not be read
data any the event, as text or JSON
decoded any what the value holds; absent if it is not understood: mcds-values(7)
degraded boolean true: the answer rests on one copy of two
deleted any[] values that this change deleted
deletes integer values that were asked to be deleted
deletes_per_s number|null deletions; null: this server does not report them
delta integer what was added
differs integer keys that have another value on the new server
digest string MD5 of the value
display integer the count with noise, for display
distribution string how the client distributes keys
divergent object[] elements whose copies differ, with their values
down boolean whether the key's server is among the dead ones
dropped boolean whether there was something to end
dry_run boolean true: nothing was done
duration_s number how long it took
encoding string[] how the value was read, the outermost first: zlib, php
error string what is wrong
estimate {factor memory_bytes hit_ratio low high}[] hit ratios with other sizes of memory
estimate_if_one_is_lost {hit_ratio low high} hit ratio with one server less
events_per_s number events of all kinds
estimate_at number hit ratio with this factor of memory
eventlog bytes the log
events integer number of events
evicted integer|null items that the new servers evicted meanwhile
evictions integer items evicted since the start
evictions_per_s number evictions
evidence object the figures that it rests on
exact boolean true: an exact counter
examples {key server belongs_on}[] some misplaced keys
exit_code integer the command's exit code
expired boolean|integer whether it was made stale
expired_tags bytes[] tags that were expired since
expired_unfetched_per_s number items that expired unread
expires boolean|null whether it will; null: this server does not report it
expires_at time when it ends
expires_at_s integer the same in whole seconds of Unix time
explain {@explain} how the client finds the server
explained integer keys that this client explains
factor number the factor of the memory
failed integer how many failed
fair number the share that its weight would give
fence string the fencing token: larger than all before it
field bytes the field
file string the file
finding string name of the check that found it
finished_at time when the command ended
first_at time time of the first event
first_id string id of the first event that was added
flags integer the flags that clients store with the value
flushed boolean whether it was flushed meanwhile
for_s number the time between the two looks
forced boolean true: it was released regardless of its holder
forgotten boolean whether the fence was removed
format string name of the value format, for --decode
forms string flags=form, in the order in which they are tried; FLAGS/MASK compares only these bits
found boolean whether it exists
fragile string when this client's placement changes by itself
free_bytes integer memory of this slab class that holds no item
fresh boolean whether it would be replayed
fresh_until_at time until when it is fresh
from string where it is now
gap boolean true: events are missing between from and to
gaps {gap from:time to:time reason}[] times of which events are missing
gets integer reads in which the hit ratio was seen
gets_per_s number reads
gone integer items that were gone when they were to be copied
guessed boolean true: the bytes decided, not the flags
has boolean whether it is a member
hash string the key's hash
healed integer index lines that were written to copies that lacked them
held boolean whether it is held
held_for_s integer seconds since its holder took it, by this machine's clock
high number upper end of the estimate
hit_ratio number hits of all reads
holder {host pid user note? acquired_at ttl_s? finished_at? slots?} who holds it; finished_at: it is only kept
host string the host
id string the event's id
ideal_share number the least that such a change must move
idle_max_s integer longest time since one of its connections sent a command
idle_median_s integer half of the items were used within so many seconds, within 2%
idle_min_s integer shortest time since one of its connections sent a command
idle_s number time since it was last read or written
if_down string true: the server gave no answer, and this option decided
index integer the server's number in the list, from 0
interval_s number time since the last look
items integer number of items
items_per_s integer items a second
judged_as string the profile by which it was found: another client's list or hashing may find another one
kept counts what was not removed, by reason
kept_s integer how long events are kept
key bytes the whole key
keys integer number of keys
lacks string what was not available
language string the client's language
last_at time time of the last event
last_id string id of the last event that was added
left string why it was left
limit_bytes integer memory for items
lines integer lines of the index or journal
listed integer elements that the index lists
listen_disabled integer how often it refused connections because it had too many
loaded integer items that were put back
lock bytes the lock
locks integer locks, which expire where they are
login string|null the user to log in as
login_in_clear boolean whether the password is sent without encryption
lost string[] lost parts
lost_items integer lost parts of it
lost_or_dropped boolean true: it was lost or dropped while the command ran, and begun again
low number lower end of the estimate
made_at time when the output was made
max integer uses allowed in one period
max_connections integer most connections
max_moved_share number the limit given
md5 string MD5 of the value
member bytes the member
memory_bytes integer memory for items
message string what it is about
method string how the share was computed: arcs or counted
missing integer listed elements that are not there: removed, expired or evicted
misses_per_s number reads of what was not there
moved integer keys that move
moved_bytes integer bytes of them
moved_share number their share
moves integer keys that are to move
name string the server's name in the list
needs string what the check needs
never_expires_share number share of the items that do not expire
no_room integer items that others would have been evicted for
note string the text given with --note
notes integer findings that need no action
ok boolean whether no problem was found
on_old_places integer keys that were found on the old servers
only_there integer keys that are only there
order string[] the servers, in the order in which this client takes them
others {server evidence}[] evidence of the other servers, where it differs
out_of_memory integer how often it had no memory for an item
outcome string what became of the lock: released, kept or lost
owner boolean whether the client looks for the key here
pairs {server belongs_on keys size_bytes}[] misplaced keys by their server and the one they belong on
parts integer items that hold the events
passed_over counts what was left out, by reason
peek boolean true: nothing was counted
period_s integer length of the period
period_started_at time when the period began
pid integer the process
point string the point of the ring that the key's hash meets
point_index integer its number
points integer points on the ring
policy string how the client uses several servers
prefix bytes the text with which keys begin
problem string why the value is not understood, or in what its flags and bytes disagree
problems integer findings that are problems
profile string the client profile
profile_before string the client profile before
prune string what became of this copy
reason string why not
rebuilding boolean whether a caller rebuilds it
received_bytes_per_s number bytes received
refused counts stores that the server refused, by cause
refused_per_s number stores that the server refused
released boolean whether it was released
removed boolean whether it was removed
renewals integer how often it was renewed
renewed boolean whether it was renewed
replayed string fresh or stale
rest boolean true: the keys of all other prefixes together
restarted boolean whether the server was restarted
result string how the command ended
retry_after_s number when it is to be tried again
rtt_us integer time of the round trip
same_as string the profile that places a sample of keys alike
saved integer items that were saved
selected_by string the client's options that select it
selection object what was selected
sent_bytes_per_s number bytes sent
server string the server
servers string[] the servers
server_pid integer process number of the server
server_started_at time when the server was started, by its clock
servers_up integer how many are up
setting string name of the setting
sets_per_s number stores
severity string problem, warning or note
shapes string[] chunk length and number of each ring in use
shards integer parts of the index
share number its share
signal integer the signal that ended the command
size_bytes integer size of the value
size_max_bytes integer size of the largest
size_median_bytes integer half of the items are no larger, within 2%
size_p99_bytes integer 99 of 100 items are no larger, within 2%
slot integer the slot of a lock that several can hold
slots integer how many can hold the lock
source string where the keys came from
stale_until_at time until when it may be replayed stale
standard_error number standard error of the estimate
started_at time when the command was started
states counts how many of its connections are in each state of the server
statistic string name of the statistic
stays integer keys that stay
stderr_bytes integer size of what went to standard error
stdout_bytes integer size of what went to standard output
step string the computation
stored boolean whether it was stored
stores_per_s number stores
structure string the key of a structure
structures integer arrays, tables, hashes, logs, visitors and counters that were saved
structures_there integer structures that are there with other content, and were left as they are
table bytes the table
tag bytes the tag
tags bytes[] the entry's tags
taken integer the value before the reset
taken_str string the same, if it is above 2^53
then {server index}|null where the client goes instead; null: nowhere
there integer items that were there already
tls boolean whether it is reached by TLS
to string where it goes
token string proof of holding the lock
told_apart_after integer|null how many keys tell this client from all others
torn integer structures that changed while they were read, and were left out
touched boolean whether it has the new ttl
trips integer most requests to one server
ttl_s number time until it expires
unfinished boolean true: it ended early, by a failure, a signal or --deadline
united integer journals and logs to which the old lines were added
unknown integer|object[] what is not known
up boolean whether it answers
updated integer items that had changed since they were copied
uptime_s integer time since it was started
used integer uses in this period
used_bytes integer memory that items use
user string the user
value integer its value
value_str string the same as text, if it is above 2^53
values any[] the values
vanished integer items that were gone when they were to be read
verdict string ok, missing, misplaced, duplicate, divergent or unreachable
verdicts counts number of keys by verdict
version string memcached's version
versions string versions of the client that do so
visitors bytes what is visited
waited_s number how long it was waited for
warnings integer findings that are warnings
wasted_bytes integer|null memory of its chunks that their items do not fill
wasted_share number|null its part of the chunks
watched_s number how long it was watched
weight integer the server's weight
when_down string what the client does when a server is dead
whole boolean|null whether the file is whole; null: it cannot be known
wire_key string the key that the client sends
wire_keys string[] the key that the client sends to each
within boolean whether no more moves than the limit
without_lock boolean true: no server answered, and the command ran without the lock
would_load integer items that would be put back
would_remove boolean whether it would be removed
written_meanwhile integer items that clients had written since
)";

}  // namespace mcds

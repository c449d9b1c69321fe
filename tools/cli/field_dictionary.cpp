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
about object what the check looks at
accepted boolean true: the pool's configuration accepts this finding
acquired boolean whether the lock was taken
acquired_at time when the holder took it
added boolean false: it was a member already
adds integer values added
advice string what to do about it
after integer|null items on the server at the end
agreement number share of the keys that are where this client puts them
alias string another name of a profile
alike_here_only string[] those of them that place keys differently on other pools
allowed boolean whether the use is allowed
already integer items that the new server had already, with the same bytes or unchanged since an earlier run
also string[] other profiles that place all these keys alike
array bytes the array
arrived integer keys that only clients of the new list look for here
astray integer keys that are not where this client places them
at time the time of the event
at_s integer the same in whole seconds of Unix time
away_s number seconds from the end of the save until the server answered
before bytes the value before
behind_after integer|null how many keys ruled this profile out as the best; null: more are needed
begins boolean true: a line of the --audit file that says that the command begins
belongs_on string the server on which the client looks for it
busy boolean true: another caller rebuilds the entry, and this command did not wait for it
by_chance number share of the keys that would be where they are by chance
bytes integer size of the file
cache bytes the entry
canonical string the parameters as canonical JSON
cas string the cas unique, for --if-cas and item remove
certificate string file of the client certificate
certificate_ends_at time when the server's certificate ends
changed boolean|integer copies that were written after they were read
check string name of the check
checks string[] the checks that were left out
chunk_bytes integer|null memory of each item of this slab class; null: items of several chunks
chunk_s integer length of a chunk in seconds
chunks integer chunks for which every event is kept
chunks_used integer chunks that have events
client string the client library
clients string the clients that write this format, with the versions compared
code string kind of the failure
compared boolean false: the copies of a structure are not compared, because their bytes may differ
complete boolean false: a part is missing
compressions string rules flags=compression, in the order in which they are tried
connections integer open connections
copied integer items that were stored
copies {@copy}[]|integer each copy's answer; 1: one copy only, whatever the configuration asks for
copies_whole boolean whether every copy has the whole index now
cost number share by which watching made a request take more processor time
count integer how many there are
counted boolean false: this visitor was already counted in this period
counter bytes the counter
coverage number|null share of the events that was seen; null: there were none
created boolean true: it did not exist before
current integer count of the running period so far
damaged_lines integer lines that were skipped because they are damaged or another program's
unknown_lines integer whole lines of another program, in an unknown form
data any the event, as text or JSON
decoded any what the value holds; absent if it is not understood: mcds-values(7)
degraded boolean true: the answer rests on one copy of two
deleted any[] the values that this change removed, each as often as it was there
deletes integer values given for removal, whether or not they were in the array
deletes_per_s number|null deletions; null: the server logs them as reads, as 1.6.18 does
delta integer what was added; below 0 for decr
differs integer copies that differ from the one on the new server
digest string MD5 of the value
display integer the count with noise, for display
distribution string how the client distributes keys
divergent object[] elements whose copies differ and have no version, with all their values
down boolean whether the key's server is among the dead ones
dropped boolean whether there was anything to drop
dry_run boolean true: nothing was moved
duration_s number how long it took
encoding string[] how the value was read, the outermost first: zlib, php
error string why there is no answer
estimate {factor memory_bytes hit_ratio low high}[] hit ratio for each size; low to high: its sampling error
estimate_if_one_is_lost {hit_ratio low high} the same with one server lost and its keys shared evenly
events_per_s number gets, stores, refused stores, deletions and evictions
eventlog bytes the log
events integer number of events
evicted integer|null items that the new servers evicted during the move; null: one of them does not count them
evictions integer items evicted for lack of memory since the server was started
evictions_per_s number items evicted for lack of memory
evidence object the figures that it rests on, of the first server
exact boolean true: an exact counter
examples {key server belongs_on}[] some misplaced keys
exit_code integer the command's exit code
expired boolean|integer items that expired before they could be stored
expired_tags bytes[] those of its tags that make it stale, because they were expired since
expired_unfetched_per_s number items that expired without having been read
expires boolean|null whether it expires; null: the server does not report it
expires_at time until when the holder can count on the lock
expires_at_s integer the same in whole seconds of Unix time
explain {@explain} the steps from key to server, and all servers in the order in which they follow
explained integer keys that this client explains
factor number the factor of the memory
failed integer how many lines or items failed
fair number the share that its weight would give
fence string the fencing token: larger than all before it
field bytes the field
file string the file
finding string name of the check that found it
finished_at time when the command ended
first_at time time of the first event
first_id string id of the first event that was stored
flags integer the flags that clients store with the value
flushed boolean whether the server was flushed meanwhile
for_s number seconds between the two reads of the statistics
forced boolean true: released with --force
forgotten boolean whether the fence was removed
format string name of the value format, for --decode
forms string rules flags=form, in the order in which they are tried; flags/mask=form compares only these bits
found boolean whether it exists
fragile string why the placement may differ on another machine
free_bytes integer memory of this slab class that holds no item
fresh boolean whether it is fresh
fresh_until_at time until when it is fresh
from string the server that the keys are on now
gap boolean true: events are missing between from and to
gaps {gap from:time to:time reason}[] times of which events are missing
gets integer reads that the server counted while it was watched
gets_per_s number keys read per second
gone integer items that expired or were removed before they were copied
guessed boolean true: the bytes decided, not the flags
has boolean whether it is a member
hash string the client's hash of the key, before it is mapped to a server
healed integer index lines that were written to copies that lacked them
held boolean whether the lock is held
held_for_s integer seconds since the holder took it, by this machine's clock
high number upper end of the estimate
hit_ratio number share of the reads that found the key
holder {host pid user note? acquired_at ttl_s? finished_at? slots?} who holds it
host string the host
id string the event's id
ideal_share number the smallest share that any placement must move to reach these weights
idle_max_s integer longest time since one of its connections sent a command
idle_median_s integer half of the items were used within this many seconds, within 2%
idle_min_s integer shortest time since one of its connections sent a command
idle_s number seconds since it was last read or written; null: the server does not report it
if_down string the answer that --if-down chose, because the server gave none that is usable
index integer the server's number in the list, from 0
interval_s number measured length of the interval
items integer number of items
items_per_s integer items per second
judged_as string the profile by which it was found; another client may have other findings
kept counts how many were not removed, by reason
kept_s integer how long events are kept
key bytes the whole key
keys integer number of keys
lacks string what was not available
language string the client's language
last_at time time of the last event
last_id string id of the last event that was stored
left string items that were not copied; of one key, the reason
limit_bytes integer memory limit for items
lines integer lines of the index
listed integer elements that the index lists
listen_disabled integer how often it stopped accepting connections because all were in use
loaded integer items that were stored
lock bytes the lock
locks integer locks, which stay and expire where they are
login string|null the user that is logged in
login_in_clear boolean whether the login crosses the network without TLS
lost string[] keys of the index that were lost
lost_items integer items of the array that are lost, at least
lost_or_dropped boolean true: it was lost or dropped while the command ran, and created again by it
low number lower end of the estimate
made_at time when the output was made
max integer uses allowed in one period
max_connections integer limit of connections
max_moved_share number the limit of --max-moved
md5 string MD5 of the value
member bytes the member
memory_bytes integer memory for items
message string the finding in words
method string arcs: exact, from the ring; counted: from 100,000 sample keys, off by at most 0.5% of all keys
missing integer listed elements that do not exist: removed, expired or evicted
misses_per_s number reads that found nothing
moved integer keys that move
moved_bytes integer size of the keys that move
moved_share number share of the keys that move
moves integer keys that move from the server
name string the server's name in the list
needs string what the check needs
never_expires_share number share of the items that do not expire
no_room integer items that were not loaded because others would have been evicted for them
note string the text given with --note
notes integer number of notes
ok boolean whether no problem was found
on_old_places integer keys that are where the old list and profile place them
only_there integer copies that exist only on the old server
order string[] the servers, in the order in which this client takes them
others {server evidence}[] evidence of the other servers, where it differs
out_of_memory integer how often it refused a store for lack of memory
outcome string what became of the lock: released, kept, lost or unknown
owner boolean whether the client looks for the key here
pairs {server belongs_on keys size_bytes}[] misplaced keys by their server and the one they belong on
parts integer items that hold the events
passed_over counts keys never saved or loaded, by reason: structures, copies, locks, votes or cache
peek boolean true: nothing was counted
period_s integer length of the period in seconds
period_started_at time when the counted period began
pid integer the process
point string the point of the ring that the key's hash meets
point_index integer its number
points integer points on the ring
policy string how the client uses several servers: all, latest, random or failover; see mcds-profiles(7)
prefix bytes text before the first colon; null: the keys of all other prefixes
problem string why the value is not understood, or in what its flags and bytes disagree
problems integer number of problems
profile string the client profile that places the keys
profile_before string the client profile before the move
prune string what became of this copy
reason string why it was not done
rebuilding boolean whether a caller rebuilds the entry
received_bytes_per_s number bytes received
refused counts the same by cause: too_large (-I) or no_memory (-M, or a slab class without pages)
refused_per_s number stores that the server refused
released boolean whether it was released
removed boolean whether it was removed
renewals integer how often it was renewed
renewed boolean whether it was renewed
replayed string how old the replayed output was: fresh or stale
rest boolean true: the keys of all other prefixes together
restarted boolean whether the server was restarted
result string how the command ended: exited, signaled, lost, max_run, not_found, not_executable or unknown
retry_after_s number seconds after which a denied use can be tried again
rtt_us integer microseconds of one round trip
same_as string the profile that places a sample of keys alike
saved integer items that were saved
selected_by string the client's options that select it
selection object the options that selected the keys
sent_bytes_per_s number bytes sent
server string the server that answered, or that has the key
servers string[] the servers concerned, the worst first; none: the whole pool; of the summary, their number
server_pid integer process number of the server
server_started_at time when the server was started, by its clock
servers_up integer how many are up
setting string name of the setting
sets_per_s number stores per second
severity string problem, warning or note
shapes string[] each length and number of chunks in use, if writers differ
shards integer parts of the index
share number share of the memory
signal integer the signal that ended the command
size_bytes integer size of the value
size_max_bytes integer size of the largest
size_median_bytes integer half of the items are no larger, within 2%
size_p99_bytes integer 99 of 100 items are no larger, within 2%
slot integer the slot of a lock that several can hold
slots integer how many can hold the lock
source string the keys that were compared: random, given or live
stale_until_at time until when it can be replayed while another caller rebuilds it
standard_error number standard error of the estimate
started_at time when the command was started
states counts how many connections are in each state, as memcached names it
statistic string name of the statistic
stays integer keys that stay on the server
stderr_bytes integer size of the standard error
stdout_bytes integer size of the standard output
step string the computation
stored boolean whether it was stored
stores_per_s number stores, including those that their condition refused
structure string the key of a structure
structures integer arrays, tables, hashes, logs and visitors that were saved; a counter counts as an item
structures_there integer structures that exist with content that cannot be merged, and were left as they are
table bytes the table
tag bytes the tag
tags bytes[] the entry's tags
taken integer the value before the reset
taken_str string the same as text, if it is above 2^53
then {server index}|null where the client goes instead; null: nowhere, and the key is lost
there integer items that existed already
tls boolean whether it is reached by TLS
to string the server that they go to
token string the token that renews and releases the lock
told_apart_after integer|null how many keys ruled out all other profiles; null: more are needed
torn integer structures that changed during three attempts and were not saved
touched boolean whether it has the new ttl
trips integer most requests that one server got
ttl_s number seconds until it expires
unfinished boolean true: it ended early, because of a failure, a signal or --deadline
united integer journals, logs and directories that existed and got the lines they lacked
unknown integer|object[] what is not known
up boolean whether the server answered
updated integer items that had changed on the old server since they were copied
uptime_s integer seconds since the server was started; earlier items are lost
used integer uses in this period, this one included if it is allowed
used_bytes integer memory that items use
user string the user
value integer the value
value_str string the same as text, if it is above 2^53
values any[] the values
vanished integer items that were removed or evicted before they were read
verdict string one of ok, missing, misplaced, duplicate, divergent, incomplete or unreachable
verdicts counts number of keys by verdict
version string memcached's version
versions string the versions that were compared
visitors bytes what is visited
waited_s number seconds that the command waited
warnings integer number of warnings
wasted_bytes integer|null memory of its chunks that their items do not fill
wasted_share number|null its part of the chunks
watched_s number how long it was watched
weight integer the server's weight
when_down string what the client does when a server is dead
whole boolean|null whether the file is complete and undamaged; null: it has no last record
wire_key string the key as servers see it, if that differs
wire_keys string[] the same for each server, if it differs between servers
within boolean whether no more keys move than --max-moved allows
without_lock boolean true: no server answered, and the command ran without the lock
would_load integer items that would be stored
would_remove boolean the same with --dry-run
written_meanwhile integer items that clients had written before they could be loaded
)";

}  // namespace mcds

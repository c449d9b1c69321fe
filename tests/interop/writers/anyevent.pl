# AnyEvent::Memcached: the options are its constructor's.
use strict;
use warnings;
use AnyEvent;
use AnyEvent::Memcached;

my ($servers, @options) = @ARGV;
my %options = map { split /=/, $_, 2 } @options;
my @servers = map {
    my ($host, $port, $weight) = split /\|/;
    [ "$host:$port", $weight ];
} split ' ', $servers;
my $client = AnyEvent::Memcached->new(servers => \@servers, timeout => 20, %options);
my $done = AnyEvent->condvar;
while (my $line = <STDIN>) {
    chomp $line;
    my ($key, $value) = split /\t/, $line;
    $done->begin;
    $client->set($key => $value, cb => sub {
        $_[0] or die "not stored: $key: " . ($_[1] // '');
        $done->end;
    });
}
$done->recv;

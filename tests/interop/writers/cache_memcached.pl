# Cache::Memcached, Cache::Memcached::Fast, Cache::Memcached::Fast::Safe: class=NAME; the rest are the constructor's options.
use strict;
use warnings;

my ($servers, @options) = @ARGV;
my %options = map { split /=/, $_, 2 } @options;
my $class = delete $options{class};
eval "require $class; 1" or die $@;
my @servers = map {
    my ($host, $port, $weight) = split /\|/;
    my $address = $port ? "$host:$port" : $host;
    $class->isa('Cache::Memcached::Fast') ? { address => $address, weight => $weight } : [ $address, $weight ];
} split ' ', $servers;
my $client = $class->new({ servers => \@servers, %options });
while (my $line = <STDIN>) {
    chomp $line;
    my ($key, $value) = split /\t/, $line;
    $client->set($key, $value) or die "not stored: $key\n";
}

# Stores values by Cache::Memcached or Cache::Memcached::Fast, reads them back and prints each as the client has read it.
# Usage: values.pl CLASS HOST:PORT compress|plain
use strict;
use warnings;
use JSON::PP;
use MIME::Base64;

my ($class, $address, $mode) = @ARGV;
eval "require $class; 1" or die $@;
my $client = $class->new({
    servers => [$address], compress_threshold => $mode eq 'compress' ? 100 : -1,
    $class =~ /Fast/ ? (utf8 => 1) : () });
$client->enable_compress(0) if $mode ne 'compress';
my $json = JSON::PP->new->utf8->canonical;
my $name = $class =~ s/::/-/gr;
my @values = ('text', '', "line\r\nline\\", "\xff\xfe\x00", 0, -5, 1.5, '1e300', 'a b', "tab\t", '{"json":1}', '0', "\xc3\xa9",
    'x' x 99, 'x' x 100, 'x' x 101, 'compressible text, ' x 5000, join(',', 1 .. 2000), "\x00" x 300, "\n");
push @values, "\x{43a}\x{43b}\x{44e}\x{447}", "\x{1f600}" x 200 if $class =~ /Fast/;
for my $number (0 .. $#values) {
    my $key = "$name-$mode-$number";
    $client->set($key, $values[$number]) or die "not stored: $key\n";
    my $read = $client->get($key);
    my $text = $read;
    my $value = utf8::is_utf8($read) || utf8::decode($text) ? $text : { '@b64' => encode_base64($read, '') };
    print $json->encode({ key => $key, value => "$value" eq $text ? "$text" : $value }), "\n";
}

<?php
// Does with Laravel's cache locks what the lines of its standard input say; answers each with one
// line. usage: laravel_peer.php HOST PORT PREFIX

require 'Illuminate/Support/autoload.php';
require 'Illuminate/Redis/autoload.php';
require 'Illuminate/Cache/autoload.php';

use Illuminate\Cache\RedisStore;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Illuminate\Redis\RedisManager;

$manager = new RedisManager(null, 'phpredis', [
    'options' => ['prefix' => ''],
    'default' => ['host' => $argv[1], 'port' => (int) $argv[2], 'database' => 0],
]);
$store = new RedisStore($manager, $argv[3], 'default');
$locks = [];

function told(string $word, string $more = '', ?int $at = null): string
{
    return $word . "\t" . ($at ?? hrtime(true)) . "\t" . $more;
}

while (($line = fgets(STDIN)) !== false) {
    $words = explode("\t", rtrim($line, "\n"));
    if ($words[0] === 'lock') {
        $lock = $store->lock($words[1], max(1, intdiv((int) $words[3], 1000)));
        try {
            $got = (int) $words[2] === 0 ? $lock->get() : $lock->block(intdiv((int) $words[2], 1000));
        } catch (LockTimeoutException $late) {
            $got = false;
        }
        if ($got) {
            $locks[$words[1]] = $lock;
        }
        $answer = told($got ? 'acquired' : 'busy', $got ? $lock->owner() : '');
    } elseif ($words[0] === 'unlock') {
        $before = hrtime(true);
        $answer = told($locks[$words[1]]->release() ? 'released' : 'lost', '', $before);
    } else {
        $answer = told('unknown', $words[0]);
    }
    fwrite(STDOUT, $answer . "\n");
    fflush(STDOUT);
}

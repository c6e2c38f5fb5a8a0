import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Does with Redisson what the lines of its standard input say; answers each with one line. */
public final class RedissonPeer {
    private final RedissonClient redisson;
    private final Map<String, String> permits = new HashMap<>();

    private RedissonPeer(String url) {
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        redisson = Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        RedissonPeer peer = new RedissonPeer(args[0]);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(peer.answer(line.split("\t")));
            System.out.flush();
        }
        peer.redisson.shutdown();
    }

    private String answer(String[] words) throws Exception {
        String name = words.length > 1 ? words[1] : "";
        switch (words[0]) {
            case "version":
                return "version\t0\tRedisson " + Redisson.class.getPackage().getImplementationVersion();
            case "lock":
                return lock(redisson.getLock(name), Long.parseLong(words[2]), Long.parseLong(words[3]));
            case "fenced":
                return fenced(redisson.getFencedLock(name), Long.parseLong(words[2]));
            case "unlock":
                return unlock(redisson.getLock(name));
            case "force":
                return told(redisson.getLock(name).forceUnlock() ? "released" : "lost", "");
            case "permit":
                return permit(name, Integer.parseInt(words[2]), Long.parseLong(words[3]));
            case "unpermit":
                return unpermit(name);
            default:
                return told("unknown", words[0]);
        }
    }

    private static String told(String word, String more) {
        return told(word, more, System.nanoTime());
    }

    private static String told(String word, String more, long at) {
        return word + "\t" + at + "\t" + more;
    }

    /** A wait of -1 has no end; a lease of 0 is renewed. */
    private static String lock(RLock lock, long wait, long lease) throws InterruptedException {
        long life = lease == 0 ? -1 : lease;
        boolean acquired = true;
        if (wait < 0) {
            lock.lock(life, TimeUnit.MILLISECONDS);
        } else {
            acquired = lock.tryLock(wait, life, TimeUnit.MILLISECONDS);
        }
        return told(acquired ? "acquired" : "busy", Integer.toString(lock.getHoldCount()));
    }

    private static String fenced(RFencedLock lock, long wait) {
        Long token = lock.tryLockAndGetToken(wait, TimeUnit.MILLISECONDS);
        return token == null ? told("busy", "") : told("acquired", token.toString());
    }

    private static String unlock(RLock lock) {
        long before = System.nanoTime();
        try {
            lock.unlock();
            return told("released", "", before);
        } catch (IllegalMonitorStateException lost) {
            return told("lost", "", before);
        }
    }

    private String unpermit(String name) {
        RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore(name);
        long before = System.nanoTime();
        boolean released = semaphore.tryRelease(permits.remove(name));
        return told(released ? "released" : "lost", "", before);
    }

    private String permit(String name, int count, long wait) throws InterruptedException {
        RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore(name);
        semaphore.trySetPermits(count);
        String id = semaphore.tryAcquire(wait, 30_000, TimeUnit.MILLISECONDS);
        if (id == null) {
            return told("busy", "");
        }
        permits.put(name, id);
        return told("acquired", id);
    }
}

import java.util.Locale;
import java.util.concurrent.CompletableFuture;

/**
 * Java's side of the benchmark of futures: the same workloads over CompletableFuture.
 *
 * <pre>FuturePeer WORKLOAD PRODUCERS CONSUMERS CAPACITY MILLISECONDS</pre>
 *
 * WORKLOAD is chain10 or when_all_1000; the other arguments are common to all peers, and not used.
 * Runs it several times until the JIT has compiled it, then for the given time, checks the results,
 * and prints operations per second.
 */
public final class FuturePeer {
    private static final int WARM_UP_RUNS = 4;
    private static final int CHAIN = 10;
    private static final int COUNT = 1000;

    private interface Round {
        /** Returns the result for n. */
        long run(long n);
    }

    public static void main(String[] args) {
        if (args.length != 5) {
            fail("usage: FuturePeer WORKLOAD PRODUCERS CONSUMERS CAPACITY MILLISECONDS");
        }
        long milliseconds = Long.parseLong(args[4]);
        boolean chain = args[0].equals("chain10");
        if (!chain && !args[0].equals("when_all_1000")) {
            fail("no workload is called " + args[0]);
        }
        for (int i = 0; i < WARM_UP_RUNS; ++i) {
            perSecond(chain, milliseconds / WARM_UP_RUNS);
        }
        System.out.printf(Locale.ROOT, "%.3f%n", perSecond(chain, milliseconds));
    }

    private static double perSecond(boolean chain, long milliseconds) {
        return chain
                ? measure(FuturePeer::chain10, 100, CHAIN, 1, CHAIN, milliseconds)
                : measure(FuturePeer::whenAll1000, 1, COUNT, COUNT, 0, milliseconds);
    }

    /** Rounds in batches until the time has passed; a round for n must return n * times + plus. */
    private static double measure(
            Round round, int batch, long operations, long times, long plus, long milliseconds) {
        long started = System.nanoTime();
        long over = started + milliseconds * 1_000_000;
        long rounds = 0;
        long sum = 0;
        long expected = 0;
        do {
            for (int i = 0; i < batch; ++i, ++rounds) {
                sum += round.run(rounds);
                expected += rounds * times + plus;
            }
        } while (System.nanoTime() < over);
        if (sum != expected) {
            fail("sum of what came out: got " + sum + ", expected " + expected);
        }
        return rounds * operations / ((System.nanoTime() - started) / 1e9);
    }

    private static long chain10(long n) {
        CompletableFuture<Long> p = new CompletableFuture<>();
        CompletableFuture<Long> f =
                p.thenApply(v -> v + 1)
                        .thenApply(v -> v + 1)
                        .thenApply(v -> v + 1)
                        .thenApply(v -> v + 1)
                        .thenApply(v -> v + 1)
                        .thenApply(v -> v + 1)
                        .thenApply(v -> v + 1)
                        .thenApply(v -> v + 1)
                        .thenApply(v -> v + 1)
                        .thenApply(v -> v + 1);
        p.complete(n);
        return f.join();
    }

    /** allOf has no values, so they are read from each future. */
    private static long whenAll1000(long n) {
        @SuppressWarnings({"unchecked", "rawtypes"})
        CompletableFuture<Long>[] promises = new CompletableFuture[COUNT];
        for (int i = 0; i < COUNT; ++i) {
            promises[i] = new CompletableFuture<>();
        }
        CompletableFuture<Void> all = CompletableFuture.allOf(promises);
        for (CompletableFuture<Long> p : promises) {
            p.complete(n);
        }
        all.join();
        long sum = 0;
        for (CompletableFuture<Long> p : promises) {
            sum += p.join();
        }
        return sum;
    }

    /** Ends the process; the harness then fails the whole bench. */
    private static void fail(String why) {
        System.err.println("java peer: " + why);
        System.exit(1);
    }
}

import java.util.Locale;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;

/**
 * Java's side of ./bench forkjoin: RecursiveTask in a ForkJoinPool.
 *
 * <pre>ForkJoinPeer fib PRODUCERS THREADS N MILLISECONDS</pre>
 *
 * Computes fib(N) until the time has passed: every call above 1 forks the first, computes the
 * second and joins. PRODUCERS is not used. Runs until the JIT has compiled it, then measures and
 * prints forks per second.
 */
public final class ForkJoinPeer {
    private static final int WARM_UP_RUNS = 4;

    private static final class Fib extends RecursiveTask<Long> {
        private static final long serialVersionUID = 1;
        private final int n;

        Fib(int n) {
            this.n = n;
        }

        @Override
        protected Long compute() {
            return of(n);
        }

        static long of(int n) {
            if (n < 2) {
                return n;
            }
            Fib first = new Fib(n - 1);
            first.fork();
            long second = of(n - 2);
            return first.join() + second;
        }
    }

    public static void main(String[] args) {
        if (args.length != 5 || !args[0].equals("fib")) {
            fail("usage: ForkJoinPeer fib PRODUCERS THREADS N MILLISECONDS");
        }
        int threads = Integer.parseInt(args[2]);
        int n = Integer.parseInt(args[3]);
        long milliseconds = Long.parseLong(args[4]);
        ForkJoinPool pool = new ForkJoinPool(threads);
        for (int i = 0; i < WARM_UP_RUNS; ++i) {
            forksPerSecond(pool, n, milliseconds / WARM_UP_RUNS);
        }
        System.out.printf(Locale.ROOT, "%.3f%n", forksPerSecond(pool, n, milliseconds));
    }

    private static double forksPerSecond(ForkJoinPool pool, int n, long milliseconds) {
        long result = 0;
        long next = 1;
        for (int i = 0; i < n; ++i) {
            long sum = result + next;
            result = next;
            next = sum;
        }
        long forks = 0;
        long took = 0;
        long start = System.nanoTime();
        do {
            long got = pool.invoke(new Fib(n));
            if (got != result) {
                fail("fib(" + n + "): got " + got + ", expected " + result);
            }
            forks += next - 1;
            took = System.nanoTime() - start;
        } while (took < milliseconds * 1_000_000);
        return forks / (took / 1e9);
    }

    /** Ends the process; the harness then fails the whole bench. */
    private static void fail(String why) {
        System.err.println("java peer: " + why);
        System.exit(1);
    }
}

package load;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.channels.Selector;
import java.nio.file.Files;
import java.security.GeneralSecurityException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.function.BooleanSupplier;

/**
 * Does one job: the loop, the connections, and what each of them does next.
 *
 * <p>A phase is warm for a while, then measured; what is counted are operations that end while it is measured. A phase
 * that runs out of tokens ends there. One that runs out of connections that may do something fails: it would measure how
 * many there are.
 */
final class Engine {
    private static final long STUCK_NS = 60_000_000_000L;
    private static final byte[] CREATE = Request.create();

    private final Job job;
    private final Main.Console console;
    private final Selector selector;
    private final byte[] handshake;
    private final Scram.Hashes hashes;
    private final List<Connection> connections = new ArrayList<>();
    private final Deque<Connection> free = new ArrayDeque<>();
    private final Deque<byte[]> hmacs = new ArrayDeque<>();
    private final byte[] describe;
    private final byte[] produce;
    private final byte[] metadata;
    private Alarm alarm;
    private BufferedWriter probed;
    private Job.Phase phase;
    private Recorder recorder;
    private boolean stopping;
    private int underWay;
    private int loggedIn;
    private int nextCredential;
    private int opened;
    private long begunNs;
    private long paced;
    private long nowNs;
    private long progressNs;

    Engine(Job job, Main.Console console, Selector selector) throws GeneralSecurityException {
        this.job = job;
        this.console = console;
        this.selector = selector;
        handshake = Request.handshake(job.mechanism);
        hashes = job.mechanism.equals("PLAIN") ? null : new Scram.Hashes(job.mechanism);
        describe = Request.describe(job.owner);
        produce = Request.produce(job.topic, job.recordBytes);
        metadata = Request.metadata(job.topic);
    }

    void run() throws IOException {
        hmacs.addAll(job.renewed);
        for (int number = 0; number < job.connections; number++) {
            connections.add(new Connection(this, number));
        }
        try (Alarm pace = new Alarm(selector)) {
            alarm = pace;
            if (job.phases.get(0).connects()) {
                free.addAll(connections);
            } else {
                logInAll();
            }
            for (Job.Phase each : job.phases) {
                phase = each;
                switch (each) {
                    case PROBE -> probe();
                    default -> measure();
                }
            }
        } finally {
            for (Connection connection : connections) {
                connection.close();
            }
            selector.selectNow(); // closes what is closed
        }
    }

    /** A connection has logged in. */
    void loggedIn(Connection connection) throws IOException {
        loggedIn++;
        if (phase == Job.Phase.LOGIN) {
            connection.end();
        }
        done(connection);
        if (phase == null) {
            openNext();
        }
    }

    /** A connection knows the salt of its token. */
    void probed(Connection connection, byte[] challenge) throws IOException {
        String[] found = Scram.saltAndIterations(challenge);
        probed.write(connection.credential.name() + "\t" + found[0] + "\t" + found[1] + "\n");
        connection.close();
        done(connection);
    }

    /** A request of a connection has been answered. */
    void answered(Connection connection) {
        Answer answer = connection.answer();
        switch (connection.asked()) {
            case Request.CREATE -> {
                connection.hmac = answer.createdHmac();
                connection.renewed = false;
                if (connection.phase == Job.Phase.CREATE) {
                    hmacs.addLast(connection.hmac);
                }
            }
            case Request.RENEW -> {
                connection.renewed = true;
                if (connection.phase == Job.Phase.RENEW) {
                    hmacs.addLast(connection.hmac);
                }
            }
            case Request.EXPIRE -> connection.hmac = null;
            case Request.PRODUCE, Request.METADATA -> {}
            default -> {
                int count = answer.describedCount();
                if (count != job.expected) {
                    throw new LoadFailed(count + " tokens described instead of " + job.expected);
                }
            }
        }
        done(connection);
    }

    private void measure() throws IOException {
        begunNs = nowNs = System.nanoTime();
        paced = 0;
        recorder = null;
        stopping = phase == Job.Phase.HOLD && job.rate == 0;
        for (Connection connection : connections) {
            connection.hmac = phase == Job.Phase.CYCLE ? connection.hmac : null;
        }
        long warmUntilNs = begunNs + job.warmNs;
        int keep = hmacs.size() * 3 / 4; // tokens to remove are few: most of them are for the measurement
        loop(() -> nowNs >= warmUntilNs || exhausted() || phase == Job.Phase.EXPIRE && hmacs.size() <= keep);
        if (exhausted()) {
            throw new LoadFailed("too few tokens for " + phase + ": none is left after the warm-up");
        }
        if (phase == Job.Phase.HOLD) {
            console.say("\"event\":\"held\",\"count\":" + loggedIn);
        }
        long cpuNs = Main.cpuNs();
        long measuredNs = System.nanoTime();
        console.say("\"event\":\"begin\",\"phase\":\"" + phase + "\"");
        recorder = new Recorder(measuredNs);
        BooleanSupplier over = () -> nowNs >= measuredNs + job.measureNs || exhausted();
        loop(phase == Job.Phase.HOLD ? console::hasLine : over);
        double seconds = (System.nanoTime() - measuredNs) / 1e9;
        console.say("\"event\":\"end\",\"phase\":\"" + phase + "\"");
        String cpu = String.format(Locale.ROOT, ",\"cpu_seconds\":%.6f", (Main.cpuNs() - cpuNs) / 1e9);
        String json = recorder.json(seconds);
        recorder = null;
        stopping = true;
        loop(() -> underWay == 0);
        console.say("\"event\":\"result\",\"phase\":\"" + phase + "\"," + json + cpu);
    }

    /** Log in on all connections, which then stay: few at a time, for a server takes some time to accept them. */
    private void logInAll() throws IOException {
        while (opened < Math.min(Job.LOGINS_AT_ONCE, job.connections)) {
            openNext();
        }
        loop(() -> loggedIn == job.connections);
    }

    private void openNext() throws IOException {
        if (opened < job.connections) {
            Connection connection = connections.get(opened++);
            connection.open(selector, job, login(connection));
            underWay++;
        }
    }

    private void probe() throws IOException {
        try (BufferedWriter writer = Files.newBufferedWriter(job.probed)) {
            probed = writer;
            begunNs = nowNs = System.nanoTime();
            loop(() -> nextCredential == job.credentials.size() && underWay == 0);
        }
        console.say("\"event\":\"probed\",\"count\":" + job.credentials.size());
    }

    private void loop(BooleanSupplier end) throws IOException {
        progressNs = nowNs = System.nanoTime();
        while (!end.getAsBoolean()) {
            while (!stopping && !free.isEmpty() && begin(free.peekFirst())) {
                free.removeFirst();
            }
            selector.select(
                    key -> {
                        try {
                            ((Connection) key.attachment()).advance(key);
                        } catch (IOException failure) {
                            throw new LoadFailed("a connection failed: " + failure);
                        }
                    },
                    free.isEmpty() || stopping || underWay == job.atOnce ? 20 : 1);
            nowNs = System.nanoTime();
            if (underWay > 0 && nowNs - progressNs > STUCK_NS) {
                throw new LoadFailed("no answer for " + STUCK_NS / 1_000_000_000L + " s in " + phase);
            }
        }
    }

    /** Begin the next operation on a free connection; false if none is due or possible now. */
    private boolean begin(Connection connection) throws IOException {
        if (phase == null) {
            return false;
        }
        long dueNs = nowNs;
        if (job.rate > 0) {
            dueNs = begunNs + (long) (paced * 1e9 / job.rate);
            if (dueNs > nowNs) {
                alarm.at(dueNs);
                return false;
            }
        }
        if (underWay == job.atOnce) {
            return false;
        }
        if (phase.logsInAgain() && nowNs - connection.endNs < Job.REST_NS) {
            if (recorder != null) {
                throw new LoadFailed("too few connections: all " + job.connections + " have just logged in again");
            }
            return false;
        }
        connection.phase = phase;
        connection.dueNs = dueNs;
        boolean begun = phase.connects() ? connect(connection) : ask(connection);
        if (begun) {
            paced++;
            underWay++;
            progressNs = nowNs;
        }
        return begun;
    }

    private boolean connect(Connection connection) throws IOException {
        boolean all = nextCredential == job.credentials.size();
        if (all && (job.once || phase == Job.Phase.PROBE)) {
            return false;
        }
        connection.open(selector, job, login(connection));
        return true;
    }

    private boolean ask(Connection connection) throws IOException {
        switch (phase) {
            case CREATE -> connection.ask(Request.CREATE, CREATE);
            case DESCRIBE -> connection.ask(Request.DESCRIBE, describe);
            case PRODUCE -> connection.ask(Request.PRODUCE, produce);
            case METADATA -> connection.ask(Request.METADATA, metadata);
            case REAUTHENTICATE, HOLD -> {
                Scram again = new Scram(hashes, connection.credential);
                connection.logInAgain(Login.scramAgain(handshake, again, job.trust));
            }
            case CYCLE -> {
                if (connection.hmac == null) {
                    connection.ask(Request.CREATE, CREATE);
                } else if (!connection.renewed) {
                    connection.ask(Request.RENEW, Request.renew(connection.hmac, -1));
                } else {
                    connection.ask(Request.EXPIRE, Request.expire(connection.hmac));
                }
            }
            default -> {
                connection.hmac = hmacs.pollFirst();
                if (connection.hmac == null) {
                    return false;
                }
                boolean renew = phase == Job.Phase.RENEW;
                short apiKey = renew ? Request.RENEW : Request.EXPIRE;
                connection.ask(
                        apiKey, renew ? Request.renew(connection.hmac, -1) : Request.expire(connection.hmac));
            }
        }
        return true;
    }

    private Login login(Connection connection) {
        if (hashes == null) {
            return Login.plain(job.user, job.password);
        }
        if (nextCredential == job.credentials.size()) {
            nextCredential = 0;
        }
        connection.credential = job.credentials.get(nextCredential++);
        return Login.scram(handshake, new Scram(hashes, connection.credential), job.trust);
    }

    private void done(Connection connection) {
        underWay--;
        long endNs = System.nanoTime();
        progressNs = connection.endNs = endNs;
        if (recorder != null && connection.phase == phase) {
            recorder.add(endNs, endNs - connection.dueNs, connection.fullHandshake());
        }
        free.addLast(connection);
    }

    private boolean exhausted() {
        boolean empty =
                switch (phase) {
                    case EXPIRE -> hmacs.isEmpty();
                    case LOGIN -> job.once && nextCredential == job.credentials.size();
                    default -> false;
                };
        return empty && underWay == 0;
    }
}

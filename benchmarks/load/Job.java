package load;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Properties;

/**
 * What is asked for, read from a properties file.
 *
 * <pre>
 * address      host:port of the server
 * tls          true: over TLS; who the server is, is not checked
 * resume       true: a connection resumes its last TLS session, if the server lets it
 * mechanism    PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
 * user         of PLAIN; also password
 * credentials  of SCRAM: the file of tokens, see Credential
 * once         true: each credential logs in once, and the phase ends with the last one
 * trust        true: server signatures are not checked (for NullServer)
 * connections  how many
 * at_once      how many of them have an operation under way at a time; 0: all
 * phases       what is done with them, one after the other, separated by commas: see Phase
 * warm_ms      how long each phase goes on before it is measured
 * measure_ms   how long it is measured
 * rate         operations a second; 0: as many as the server answers, each connection waiting for its answer
 * renewed      of RENEW: the file of tokens that are there already, the HMAC of each in base64; else those of CREATE
 * owner        of DESCRIBE; also expected, how many tokens there must be
 * topic        of PRODUCE and METADATA; also record_bytes, how long the value of a record is
 * probed       of PROBE: the file for what is found out
 * </pre>
 */
final class Job {
    /** What is measured. */
    enum Phase {
        /** Connect, log in, close. */
        LOGIN,
        /** Log in with every token up to the server's first message; write down salts and iterations. */
        PROBE,
        /** Stay, until the next line of standard input; with a rate, log in again at that rate. */
        HOLD,
        /** Create tokens; they are there for the phases that follow. */
        CREATE,
        /** Renew them, again and again. */
        RENEW,
        /** Remove them; ends with the last one. */
        EXPIRE,
        /** Create a token, renew it, remove it. */
        CYCLE,
        /** Describe the tokens of one owner. */
        DESCRIBE,
        /** Write a record to a topic. */
        PRODUCE,
        /** Ask where a topic is. */
        METADATA,
        /** Log in again on a connection that has logged in, with the same token. */
        REAUTHENTICATE;

        /** Whether each operation has a connection of its own. */
        boolean connects() {
            return this == LOGIN || this == PROBE;
        }

        /** Whether each operation is a login on a connection that has logged in. */
        boolean logsInAgain() {
            return this == REAUTHENTICATE || this == HOLD;
        }
    }

    /** How many connections that stay log in at the same time. */
    static final int LOGINS_AT_ONCE = 64;

    /**
     * How long a connection rests before it logs in again. Servers refuse a second one within a second of the begin of the
     * first; this counts from its end, and a little more, because some look at a clock that is adjusted.
     */
    static final long REST_NS = 1_010_000_000L;

    final InetSocketAddress address;
    final boolean tls;
    final boolean resume;
    final String mechanism;
    final String user;
    final String password;
    final List<Credential> credentials;
    final boolean once;
    final boolean trust;
    final int connections;
    final int atOnce;
    final List<Phase> phases;
    final long warmNs;
    final long measureNs;
    final double rate;
    final List<byte[]> renewed;
    final String owner;
    final int expected;
    final String topic;
    final int recordBytes;
    final Path probed;

    Job(Path file) throws IOException {
        Properties given = new Properties();
        try (var reader = Files.newBufferedReader(file)) {
            given.load(reader);
        }
        String[] hostAndPort = given.getProperty("address").split(":");
        address = new InetSocketAddress(hostAndPort[0], Integer.parseInt(hostAndPort[1]));
        tls = Boolean.parseBoolean(given.getProperty("tls"));
        resume = Boolean.parseBoolean(given.getProperty("resume"));
        mechanism = given.getProperty("mechanism", "PLAIN");
        user = given.getProperty("user", "");
        password = given.getProperty("password", "");
        String tokens = given.getProperty("credentials");
        credentials = tokens == null ? List.of() : Credential.read(Path.of(tokens));
        once = Boolean.parseBoolean(given.getProperty("once"));
        trust = Boolean.parseBoolean(given.getProperty("trust"));
        connections = Integer.parseInt(given.getProperty("connections", "1"));
        int most = Integer.parseInt(given.getProperty("at_once", "0"));
        atOnce = most == 0 ? connections : most;
        phases = Arrays.stream(given.getProperty("phases").split(",")).map(Phase::valueOf).toList();
        warmNs = Long.parseLong(given.getProperty("warm_ms", "0")) * 1_000_000;
        measureNs = Long.parseLong(given.getProperty("measure_ms", "0")) * 1_000_000;
        rate = Double.parseDouble(given.getProperty("rate", "0"));
        String hmacs = given.getProperty("renewed");
        renewed = hmacs == null
                ? List.of()
                : Files.readAllLines(Path.of(hmacs)).stream().map(Base64.getDecoder()::decode).toList();
        owner = given.getProperty("owner", "");
        expected = Integer.parseInt(given.getProperty("expected", "0"));
        topic = given.getProperty("topic", "");
        recordBytes = Integer.parseInt(given.getProperty("record_bytes", "0"));
        probed = given.containsKey("probed") ? Path.of(given.getProperty("probed")) : null;
    }
}

package load;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;

/**
 * Whole frames of requests in the versions that the Java clients of Kafka 3.9 use, those about topics in one that names
 * them.
 *
 * <p>A connection has one request under way, so its correlation id can be the API key: an answer shows what it answers.
 */
final class Request {
    static final short PRODUCE = 0;
    static final short METADATA = 3;
    static final short SASL_HANDSHAKE = 17;
    static final short API_VERSIONS = 18;
    static final short SASL_AUTHENTICATE = 36;
    static final short CREATE = 38;
    static final short RENEW = 39;
    static final short EXPIRE = 40;
    static final short DESCRIBE = 41;

    private static final String CLIENT_ID = "load";
    private static final int PRODUCE_TIMEOUT_MS = 30_000;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);

    /** Bytes without a header. */
    private Request() {}

    private Request(short apiKey, int version, boolean flexible) {
        int16(apiKey).int16(version).int32(apiKey).string(CLIENT_ID);
        if (flexible) {
            noTags();
        }
    }

    static byte[] apiVersions() {
        return new Request(API_VERSIONS, 3, true).compactString("load").compactString("1").noTags().frame();
    }

    static byte[] handshake(String mechanism) {
        return new Request(SASL_HANDSHAKE, 1, false).string(mechanism).frame();
    }

    static byte[] authenticate(byte[] token) {
        return new Request(SASL_AUTHENTICATE, 2, true).compactBytes(token).noTags().frame();
    }

    /** A token of the client's own, without renewers, that lives as long as the server lets it. */
    static byte[] create() {
        return new Request(CREATE, 3, true).uvarint(0).uvarint(0).uvarint(1).int64(-1).noTags().frame();
    }

    static byte[] renew(byte[] hmac, long periodMs) {
        return new Request(RENEW, 2, true).compactBytes(hmac).int64(periodMs).noTags().frame();
    }

    /** Remove a token now. */
    static byte[] expire(byte[] hmac) {
        return new Request(EXPIRE, 2, true).compactBytes(hmac).int64(-1).noTags().frame();
    }

    /** The tokens of one owner. */
    static byte[] describe(String owner) {
        Request request = new Request(DESCRIBE, 3, true).uvarint(2);
        return request.compactString("User").compactString(owner).noTags().noTags().frame();
    }

    /** One record for the first partition of a topic, answered when its leader has it (acks=1). */
    static byte[] produce(String topic, int recordBytes) {
        Request request = new Request(PRODUCE, 9, true).uvarint(0).int16(1).int32(PRODUCE_TIMEOUT_MS);
        request.uvarint(2).compactString(topic).uvarint(2).int32(0).compactBytes(batch(recordBytes));
        return request.noTags().noTags().noTags().frame();
    }

    /** Where the partitions of a topic are. */
    static byte[] metadata(String topic) {
        Request request = new Request(METADATA, 9, true).uvarint(2).compactString(topic).noTags();
        request.bytes.writeBytes(new byte[3]); // no topic is to be made, and nothing about permissions is asked
        return request.noTags().frame();
    }

    /** A batch of one record without key, as the record format 2 has it. */
    private static byte[] batch(int recordBytes) {
        Request record = new Request().uvarint(0).uvarint(0).uvarint(0).uvarint(1).uvarint(2 * recordBytes);
        record.bytes.writeBytes(new byte[recordBytes]);
        record.uvarint(0);
        long now = System.currentTimeMillis();
        Request summed = new Request().int16(0).int32(0).int64(now).int64(now).int64(-1).int16(-1).int32(-1).int32(1);
        summed.uvarint(2 * record.bytes.size()).bytes.writeBytes(record.bytes.toByteArray());
        CRC32C sum = new CRC32C();
        sum.update(summed.bytes.toByteArray());
        Request batch = new Request().int64(0).int32(9 + summed.bytes.size()).int32(-1);
        batch.bytes.write(2);
        batch.int32((int) sum.getValue()).bytes.writeBytes(summed.bytes.toByteArray());
        return batch.bytes.toByteArray();
    }

    private byte[] frame() {
        return ByteBuffer.allocate(4 + bytes.size()).putInt(bytes.size()).put(bytes.toByteArray()).array();
    }

    private Request int16(int value) {
        bytes.write(value >> 8);
        bytes.write(value);
        return this;
    }

    private Request int32(int value) {
        return int16(value >> 16).int16(value);
    }

    private Request int64(long value) {
        return int32((int) (value >> 32)).int32((int) value);
    }

    private Request string(String text) {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        int16(encoded.length);
        bytes.writeBytes(encoded);
        return this;
    }

    private Request compactString(String text) {
        return compactBytes(text.getBytes(StandardCharsets.UTF_8));
    }

    private Request compactBytes(byte[] content) {
        uvarint(content.length + 1);
        bytes.writeBytes(content);
        return this;
    }

    private Request uvarint(int value) {
        int rest = value;
        while (rest > 0x7f) {
            bytes.write(rest & 0x7f | 0x80);
            rest >>>= 7;
        }
        bytes.write(rest);
        return this;
    }

    private Request noTags() {
        return uvarint(0);
    }
}

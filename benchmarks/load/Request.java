package load;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Whole frames of requests in the versions that the Java clients of Kafka 3.9 use.
 *
 * <p>A connection has one request under way, so its correlation id can be the API key: an answer shows what it answers.
 */
final class Request {
    static final short SASL_HANDSHAKE = 17;
    static final short API_VERSIONS = 18;
    static final short SASL_AUTHENTICATE = 36;
    static final short CREATE = 38;
    static final short RENEW = 39;
    static final short EXPIRE = 40;
    static final short DESCRIBE = 41;

    private static final String CLIENT_ID = "load";

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);

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

package load;

/** The measurement is not valid: an answer was an error, or did not come. The message says which. */
final class LoadFailed extends RuntimeException {
    private static final long serialVersionUID = 1;

    LoadFailed(String message) {
        super(message);
    }
}

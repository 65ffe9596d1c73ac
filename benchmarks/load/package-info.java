/**
 * The load generator: one thread, one selector, requests encoded beforehand, answers read only as far as they matter.
 *
 * <p>{@link Main} reads the names of job files from standard input and writes what happens as lines of JSON. Read on in
 * {@link Job} (what can be asked for), {@link Engine} (the loop) and {@link Login} (what a login says). {@link
 * NullServer} answers without doing anything, to see how much load this generator can make.
 *
 * <p>Compiled by {@code benchmarks/generator.py}; needs nothing but a JDK.
 */
package load;

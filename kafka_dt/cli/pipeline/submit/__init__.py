"""The program for `spark-submit`, alone in its folder: Python looks for modules beside a program before all others."""

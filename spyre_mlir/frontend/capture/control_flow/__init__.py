"""Operations on graphs: loops that are written out, and those that the program keeps."""

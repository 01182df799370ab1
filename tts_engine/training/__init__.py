"""What the package's data and graphs are made with; none of it runs when Sayline speaks."""

"""What importing gzkcore costs; scikit-learn, which it stands on, beside it."""


class Import:
    """Each in a process of its own, interpreter included."""

    def timeraw_gzkcore(self):
        return "import gzkcore"

    def timeraw_sklearn(self):
        return "import sklearn"

    def timeraw_nothing(self):
        return "pass"

"""The language itself: text to tokens to trees and back, and what a tree can be asked without evaluating it."""

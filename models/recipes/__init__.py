"""Recipes: published models in, model packs out."""

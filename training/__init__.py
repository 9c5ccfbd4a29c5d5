"""What only training needs; run from the checkout, never imported by the package."""
